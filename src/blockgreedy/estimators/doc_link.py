"""The link to the documentation in the picture that notebooks draw of an estimator."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata


class DocLinkMixin:
    _doc_link_module = "blockgreedy"

    @property
    def _doc_link_template(self) -> str:
        """On the site that the installed package names as its documentation; no link where it names none."""
        try:
            urls = metadata("blockgreedy").get_all("Project-URL") or []
        except PackageNotFoundError:
            urls = []
        named: dict[str, str] = dict(url.split(", ", 1) for url in urls)
        site = named.get("Documentation", "").rstrip("/")
        return site and site + "/api-estimators/#blockgreedy.estimators.{estimator_name}"
