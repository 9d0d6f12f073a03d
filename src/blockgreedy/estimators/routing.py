"""Metadata routing of the models that choose alpha: what goes to the splitter, and what to the scorer."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.model_selection import check_cv
from sklearn.utils import metadata_routing
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)

from blockgreedy.estimators.scoring import scorer_of


class Routed(NamedTuple):
    """Keyword arguments."""

    split: dict[str, Any]
    score: dict[str, Any]


class RouterMixin:
    """A router as scikit-learn's LogisticRegressionCV is one: ``groups`` go to the splitter that asks for them.

    Without routing ``groups`` go to the splitter and ``sample_weight`` to the scorer.
    ``set_fit_request(groups=True)`` hands groups to a splitter that makes no requests.
    """

    def get_metadata_routing(self: Any) -> MetadataRouter:
        """Who gets what, for scikit-learn's metadata routing.

        Returns
        -------
        MetadataRouter
            ``sample_weight`` and ``offset`` for the fit itself, what the splitter asks for, and what the scorer asks
            for in ``fit`` and ``score``.
        """
        own, scorer = super().get_metadata_routing(), scorer_of(self.scoring)  # type: ignore[misc]
        if own.fit.requests.get("groups", True) is None:  # then the splitter's request alone counts
            own.fit.add_request(param="groups", alias=metadata_routing.UNUSED)
        if scorer is not None and "sample_weight" in own.score.requests:
            own.score.add_request(param="sample_weight", alias=metadata_routing.UNUSED)
        router = MetadataRouter(owner=self).add_self_request(own)
        splitter = (
            self.cv if hasattr(self.cv, "split") else check_cv()
        )  # pairs of rows may be an iterator: not to be read
        router.add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        if scorer is not None:
            to_scorer = MethodMapping().add(caller="fit", callee="score").add(caller="score", callee="score")
            router.add(scorer=scorer, method_mapping=to_scorer)
        return router

    def _route(self, caller: str, params: dict[str, Any], **given: Any) -> Routed:
        """``given``: arguments that the caller names itself, None where they were not given."""
        _raise_for_params(params, self, caller)
        given = {name: value for name, value in given.items() if value is not None}
        if not _routing_enabled():
            return Routed(_only("groups", given), _only("sample_weight", given))
        if not given and not params:
            return Routed({}, {})
        routed = process_routing(self, caller, **given, **params)
        split, score = (routed.get(name, {}) for name in ("splitter", "scorer"))
        own = super().get_metadata_routing().fit.requests  # type: ignore[misc]
        asked = _only("groups", given) if own.get("groups") is True else {}
        return Routed(asked | dict(split.get("split", {})), dict(score.get("score", {})))


def _only(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {name: given[name]} if name in given else {}
