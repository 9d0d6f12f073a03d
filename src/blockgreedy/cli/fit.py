"""``blockgreedy fit``: one model, and how good it is."""

import json
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from blockgreedy.base.names import PARTITION_KINDS, GreedyRule, Method, OnDivergence, ScanMode, Update
from blockgreedy.base.threads import resolve_threads
from blockgreedy.base.validate import check_limits, non_negative, seed_of
from blockgreedy.cli.advice import copies_advice
from blockgreedy.cli.asked import ModelOption, ProblemOptions, ReportOption
from blockgreedy.cli.facts import data_facts, finite, pick, settings_of
from blockgreedy.cli.outputs import Input, Output
from blockgreedy.cli.progress import Progress, ratio
from blockgreedy.cli.scores import check_share, held_out_words, score_facts, scores_of, show_scores, split
from blockgreedy.cli.shell import Results, app, fail, failures, note, option, takes, warnings_as_lines
from blockgreedy.cli.stored import StoreOptions, rows_of
from blockgreedy.cli.texts import NOT_CONVERGED, THREADS, TOL, WRONG_USE
from blockgreedy.cli.together import Company, company_of, refuse_copies
from blockgreedy.data import Dataset
from blockgreedy.models.extras import LeftOutWarning
from blockgreedy.models.model import Model
from blockgreedy.models.quality import ON_TRAINING_ROWS
from blockgreedy.partitions.partition import Partition
from blockgreedy.problem.problem import Problem
from blockgreedy.solvers.checkpoint import CheckpointWarning
from blockgreedy.solvers.family_arguments import FamilyArguments, check_family_arguments
from blockgreedy.solvers.options import FamilyOptions, resolve_blocks
from blockgreedy.solvers.risk import ConvergenceRiskWarning
from blockgreedy.solvers.solution import Solution
from blockgreedy.solvers.solve import solve

_STYLES = {"converged": "bold green", "diverged": "bold red"}

_of_problem, _of_method = partial(option, "Problem"), partial(option, "Method")
_of_family = partial(option, "Settings of the methods other than auto")
_of_stopping, _of_output = partial(option, "Stopping"), partial(option, "Output")
_TRACE = typer.Option(
    "--trace", help="Write objective, gap and nonzeros over time to this CSV file.", rich_help_panel="Output"
)


@dataclass(frozen=True)
class FitOptions(StoreOptions, ProblemOptions):
    """What ``blockgreedy fit`` accepts. The library checks the values; fields it takes have its names."""

    alpha: float | None = _of_problem(None, "--alpha", "Weight of the L1 penalty; larger means fewer features.")
    alpha_ratio: float | None = _of_problem(
        None,
        "--alpha-ratio",
        "Alpha as a fraction of alpha_max, the smallest alpha at which all weights are 0 (try 0.1 or 0.01).",
    )

    method: Method = _of_method(
        "auto",
        "--method",
        "auto is the fast default solver; the others are the coordinate descent methods of the NIPS 2012 paper.",
        choices=Method,
    )
    n_blocks: int | None = _of_method(
        None, "--blocks", "Methods other than auto: number of blocks of features, B (default: 32)."
    )
    seed: int = _of_method(
        0,
        "--seed",
        "Random seed: for the rows of --holdout, for random blocks and for the order in which blocks are used.",
    )
    n_threads: int | None = _of_method(None, "--threads", THREADS)

    # None leaves the choice to the library, which refuses these with the default method.
    partition: str | None = _of_family(
        None,
        "--partition",
        f"How features are divided into blocks: {', '.join(PARTITION_KINDS)} (default: random), or a file written by "
        "blockgreedy partition.",
    )
    blocks_per_iter: int | None = _of_family(
        None, "--blocks-per-iter", "Number of blocks updated in each iteration, P (default: all)."
    )
    per_block: int | None = _of_family(
        None, "--per-block", "Number of features updated in each of these blocks (default: 1)."
    )
    update: Update | None = _of_family(
        None,
        "--update",
        "How the steps of several blocks are combined. add: all at once. line-search: each refined by a line search, "
        "then all at once. sweep: one after the other, on the loss itself. joint (default): one after the other, on "
        "a quadratic upper bound of the objective. add and line-search may diverge.",
        choices=Update,
    )
    step_scale: str | None = _of_family(
        None,
        "--step-scale",
        "For --update add: factor for the length of steps, below 1 for shorter ones (default: 1). theory: a factor "
        "for which the theory guarantees that the objective falls on average. paper: the step as printed in the "
        "paper, which is n times shorter (n rows).",
    )
    greedy_rule: GreedyRule | None = _of_family(
        None,
        "--greedy-rule",
        "Which feature of a block is updated: the one whose step lowers the objective most (gain, the default), or "
        "the one with the largest step (step).",
        choices=GreedyRule,
    )
    scan: ScanMode | None = _of_family(
        None,
        "--scan",
        "How threads divide the work of looking at all features: equal parts (slices, the default), or by block "
        "(blocks).",
        choices=ScanMode,
    )
    atomic: bool = _of_family(
        False, "--atomic", "Threads add their steps concurrently, as in the paper; two runs then differ slightly."
    )
    on_divergence: OnDivergence | None = _of_family(
        None,
        "--on-divergence",
        "What to do when the objective grows without bound (default: stop).",
        choices=OnDivergence,
    )

    tol: float = _of_stopping(1e-4, "--tol", TOL)
    max_iter: int | None = _of_stopping(None, "--max-iter", "Stop after this many iterations.")
    max_seconds: float | None = _of_stopping(None, "--max-seconds", "Stop after this many seconds.")

    holdout: float | None = _of_output(
        None, "--holdout", "Leave this share of the rows (such as 0.2) out of the fit and score the model on them."
    )

    model: ModelOption = None
    report: ReportOption = None
    trace: Annotated[Path | None, _TRACE] = None
    trace_iters: int | None = _of_output(None, "--trace-iters", "For --trace: write a line every N iterations.")
    trace_seconds: float | None = _of_output(None, "--trace-seconds", "For --trace: write a line every N seconds.")
    telemetry: Path | None = _of_output(
        None,
        "--telemetry",
        "Methods other than auto: write the selected blocks, accepted features, steps and gains of every iteration "
        "to this .csv or .parquet file.",
    )
    trace_spectral_radius: bool = _of_family(
        False,
        "--trace-spectral-radius",
        "For --trace: also record how correlated the updated features are (the spectral radius of their Gram "
        "matrix).",
    )
    as_json: bool = _of_output(False, "--json", "Print one JSON object instead of the summary.")
    quiet: bool = _of_output(False, "--quiet -q", "Print no progress and no notes.")

    def check(self) -> None:
        super().check()
        if (self.alpha is None) == (self.alpha_ratio is None):
            raise ValueError(
                "give exactly one of --alpha and --alpha-ratio (try --alpha-ratio 0.01), or let cross-validation "
                "choose: blockgreedy cv"
            )
        seed_of("seed", self.seed)
        for name in ("alpha", "alpha_ratio"):
            if getattr(self, name) is not None:
                non_negative(name, getattr(self, name))
        check_limits(self.tol, self.max_iter, self.max_seconds, self.trace_iters, self.trace_seconds)
        check_family_arguments(self.method, self.given_family(), None if _partition_file(self) else self.partition)
        self.check_store(self.data, self.method, self.holdout, self.dtype)

    def of_solve(self) -> dict[str, Any]:
        asked = {name: getattr(self, name) for name in signature(solve).parameters if hasattr(self, name)}
        return asked | self.given_family() | {"grid": self.parsed_grid}

    def given_family(self) -> dict[str, Any]:
        return {name: v for name, v in self.of_family().items() if v is not None and v is not False}

    def of_family(self) -> dict[str, Any]:
        asked = {name: getattr(self, name) for name in FamilyArguments.__annotations__ if hasattr(self, name)}
        return asked | {"step_scale": _scale(self.step_scale), "telemetry": self.telemetry is not None}


@app.command()
@takes(FitOptions)
def fit(options: FitOptions) -> None:
    """Fit one model at one alpha, with a proof of how close it is to the optimum.

    If the labels have two values, the model is a logistic regression, and the larger value is the positive class;
    otherwise it is a lasso. --loss overrides this. Ctrl-C stops the fit; the best weights so far are reported, and
    saved if --model is given. A store (data convert) may be larger than memory, and several processes can fit it
    together.

    Exit codes: 0 converged, 3 not converged (stopped, interrupted, diverged), 2 wrong use, 1 any other error.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy fit reuters.svm --alpha-ratio 0.01 --model model.npz --report run.html[/]
    [cyan]blockgreedy fit clicks.csv --target clicked --categorical all --alpha 1e-5[/]
    [cyan]blockgreedy fit data.npz --alpha 1e-4 --holdout 0.2[/]
    [cyan]blockgreedy fit data.npz --alpha 1e-4 --tol 1e-6 --json > fit.json[/]
    [cyan]blockgreedy fit data.npz --alpha 1e-4 --method thread-greedy --update add --trace run.csv[/]
    [cyan]mpirun -n 8 blockgreedy fit big.store --alpha-ratio 0.01 --cluster mpi --checkpoint big.checkpoint[/]
    """
    refuse_copies(options.cluster)
    with company_of(options.cluster, options.checkpoint) as company:
        _fit(options if company.leads else options.silenced(), company)


def _fit(options: FitOptions, company: Company) -> None:
    with company.agreeing():
        trace = Output("--trace", options.trace, "the trace")
        kept = Output("--checkpoint", options.checkpoint if company.leads else None, "the checkpoint")
        steps = Output("--telemetry", options.telemetry, "the telemetry", (".csv", ".parquet"))
        written = (options.model, options.report, trace, steps, kept)
        outputs = options.checked(*written, also_read=_partition_file(options))
        check_share(options.holdout)
    progress, rows = Progress(options.tol), ON_TRAINING_ROWS
    shown = progress.shown(not options.quiet)
    with shown, warnings_as_lines(ConvergenceRiskWarning), warnings_as_lines(CheckpointWarning):
        with company.agreeing(), failures() as stage:
            dataset = scored = _read(options, company)
            progress.phase, stage.code = "preparing", WRONG_USE  # what is wrong from here on is what was asked for
            if options.holdout is not None:
                dataset, scored = split(dataset, options.holdout, options.seed)
                rows = held_out_words(options.holdout)
            problem = _problem(options, dataset, company)
        with company.silent(), failures(code=WRONG_USE):
            with company.sharing():  # alpha_max is asked for later too, by the first rank alone
                if options.alpha_ratio is not None:
                    problem = problem.with_alpha(options.alpha_ratio * problem.alpha_max)
                elif company.cluster is not None:
                    assert problem.alpha_max >= 0
            progress.f_null = problem.null_model.objective
            asked = _with_partition(options) | {"cluster": company.cluster, "n_threads": problem.n_threads}
            asked["memory"] = options.memory if problem.design.is_tiled else None  # a small store is a matrix by now
            solution = solve(problem, callback=progress.see, **asked)
        if not company.leads:
            raise typer.Exit
        with failures(code=WRONG_USE):
            weights = problem.row_weights if scored is dataset else None
            with warnings_as_lines(LeftOutWarning):
                quality = scores_of(problem, solution, scored, rows, weights)
    code = 0 if solution.status == "converged" else NOT_CONVERGED
    outputs.write("trace", solution.trace.to_csv)
    if solution.telemetry is not None:
        outputs.write("telemetry", solution.telemetry.save)
    facts = _facts(options, dataset, problem, solution, company)
    model = outputs.write_model(
        lambda: replace(
            Model.of_solution(problem, solution, dataset, settings_of(facts), options.memory), quality=quality
        )
    )
    if model is not None and not options.quiet:
        if model.aliases is None:
            note("too many columns of the store would have to be compared to say which features have copies")
        elif model.aliases:
            note(copies_advice(len(model.aliases)))
    if options.as_json:
        typer.echo(json.dumps(finite(facts) | {"quality": None if quality is None else score_facts(quality)}))
    else:
        console = Results()
        console.print(_summary(facts, outputs.written))
        console.print()
        if quality is not None:
            show_scores(console, quality, problem.classes)
        if options.holdout is not None:
            rest = f"The model was fitted on the other {problem.n_samples:,} rows."
            console.print(f"{rest} Fit without --holdout to use all rows.", style="dim", highlight=False)
    raise typer.Exit(outputs.code or code)


def _read(options: FitOptions, company: Company) -> Dataset:
    stored = options.stored(options.data, company)
    return options.read(n_threads=options.n_threads) if stored is None else stored


def _with_partition(options: FitOptions) -> dict[str, Any]:
    """The arguments of solve; a partition that is no kind is a file."""
    asked = options.of_solve()
    for _, path in _partition_file(options):
        asked["partition"] = Partition.load(path)
    return asked


def _scale(asked: str | None) -> float | str | None:
    """The step scale as a number where it is one; the library says what is wrong with any other."""
    try:
        return None if asked is None else float(asked)
    except ValueError:
        return asked


def _partition_file(options: FitOptions) -> list[Input]:
    name = options.partition
    is_file = name is not None and name not in PARTITION_KINDS and name.endswith(".npz")
    if name is not None and is_file and not Path(name).is_file():
        fail(f"--partition must name an existing file, got {name!r}", WRONG_USE)
    return [("the partition", Path(name))] if name is not None and is_file else []


def _problem(options: FitOptions, dataset: Dataset, company: Company) -> Problem:
    threads = company.threads(options.n_threads)
    return options.make_problem(dataset, options.alpha or 0.0, n_threads=threads, **rows_of(dataset))


def _facts(
    options: FitOptions, dataset: Dataset, problem: Problem, solution: Solution, company: Company
) -> dict[str, Any]:
    """Everything the run has to say; the keys are those of --json."""
    return {
        **data_facts(options.data, dataset, problem),
        **pick(problem, "alpha alpha_max l2 fit_intercept standardize"),
        "loss": problem.loss.name,
        **pick(options, "target positive method tol holdout"),
        **({} if options.holdout is None else {"seed": options.seed}),
        **_family_facts(options, problem, solution),
        **_cluster_facts(options, problem, solution, company),
        "n_threads": resolve_threads(problem.n_threads),
        **pick(solution, "status message objective gap"),
        "f_null": problem.null_model.objective,
        "relative_gap": ratio(solution.gap, problem.null_model.objective),
        **pick(solution, "intercept nonzeros n_iter seconds check_seconds"),
    }


def _cluster_facts(options: FitOptions, problem: Problem, solution: Solution, company: Company) -> dict[str, Any]:
    if company.cluster is None or solution.grid is None:
        return {"out_of_core": True} if problem.design.is_tiled else {}
    grid = solution.grid
    return {"cluster": options.cluster, "ranks": grid[0] * grid[1], "grid": f"{grid[0]}x{grid[1]}"}


def _family_facts(options: FitOptions, problem: Problem, solution: Solution) -> dict[str, Any]:
    """The settings of the family; the default method has none of them."""
    if options.method == "auto" or solution.partition is None:
        return {}
    B = solution.partition.n_blocks
    B, P = resolve_blocks(options.method, problem.n_features, options.n_blocks, options.blocks_per_iter, B)
    used = FamilyOptions(B, P)
    given = {name: value for name, value in options.of_family().items() if value is not None}
    return {
        "n_blocks": B,
        "blocks_per_iter": P,
        **pick(used, "per_block update greedy_rule scan atomic"),
        **{name: value for name, value in given.items() if hasattr(used, name)},
        "step_scale": solution.step_scale,
        "partition": solution.partition.kind,
        "seed": options.seed,
    }


def _summary(f: dict[str, Any], files: dict[str, Path]) -> Table:
    of_max = f"{ratio(f['alpha'], f['alpha_max']):.3g} of alpha_max {f['alpha_max']:.6g}"
    extras = (f", l2 {f['l2']:g}" if f["l2"] else "") + (", weights ≥ 0" if f["positive"] else "")
    extras += (", intercept" if f["fit_intercept"] else "") + (", standardised" if f["standardize"] else "")
    rate = f" ({f['n_iter'] / f['seconds']:,.0f} per second)" if f["seconds"] > 0 else ""
    left_out = f" (without the {100 * f['holdout']:g} % held out)" if f["holdout"] is not None else ""
    rows = {
        "data": f"{f['data']}: {f['n_samples']:,} × {f['n_features']:,}, {f['nonzeros_X']:,} nonzeros{left_out}",
        "problem": f"{f['loss']}, alpha {f['alpha']:.6g} ({of_max}){extras}",
        "method": f"{f['method']}; threads {f['n_threads']}",
    }
    if "out_of_core" in f:
        rows["method"] += ", a tile of the store at a time"
    if "cluster" in f:
        kind = "MPI rank" if f["cluster"] == "mpi" else "Dask worker"
        ranks = f"{f['ranks']:,} {kind}{'' if f['ranks'] == 1 else 's'}"
        rows["method"] = f"{f['method']}; {ranks}, grid {f['grid']}; threads of each: {f['n_threads']}"
    if "update" in f:
        blocks = f"{f['blocks_per_iter']:,} of {f['n_blocks']:,} {f['partition']} blocks per iteration"
        features = "1 feature" if f["per_block"] == 1 else f"{f['per_block']:,} features"
        rows["method"] = f"{f['method']}: {blocks}, {features} per block, chosen by {f['greedy_rule']}"
        how = f"{', atomic' if f['atomic'] else ''}; scan {f['scan']}, seed {f['seed']}, threads {f['n_threads']}"
        scale = f" with step_scale {f['step_scale']:.6g}" if f["step_scale"] != 1 else ""
        rows["update"] = f["update"] + scale + how
    rows |= {
        "status": f["status"],
        "message": f["message"],
        "objective": f"{f['objective']:.10g} (null model {f['f_null']:.6g})",
        "gap": f"{f['gap']:.3g} (relative {f['relative_gap']:.3g})",
        "nonzeros": f"{f['nonzeros']:,} of {f['n_features']:,}",
        "iterations": f"{f['n_iter']:,}{rate}",
        "seconds": f"{f['seconds']:.3f} in iterations, {f['check_seconds']:.3f} in checks of the gap",
    }
    if f["fit_intercept"]:
        rows["intercept"] = f"{f['intercept']:.10g}"
    rows |= {name: str(path) for name, path in files.items()}
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    for name, value in rows.items():
        table.add_row(name, Text(value, style=_STYLES.get(value, "bold yellow") if name == "status" else ""))
    return table
