"""The paper's experiments: data, plan, clocks, and verdicts that follow the numbers."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import blockgreedy as bg
import made_up
from blockgreedy.experiments import paper, plan
from blockgreedy.experiments.claims_blocks import rate_ratio
from blockgreedy.experiments.page import make_page
from blockgreedy.experiments.page_follow_up import follow_up_sentences
from blockgreedy.experiments.plan import make_plan
from blockgreedy.experiments.results import Results, at, overtaking
from blockgreedy.experiments.runs import Experiments
from blockgreedy.experiments.sets import Source, alpha_text, alphas_of, choose, find_files, prepare
from blockgreedy.experiments.table import shown
from blockgreedy.experiments.tables import gains
from blockgreedy.experiments.tables_reuters import reuters_tables


@pytest.mark.parametrize(
    ("alpha_max", "lambda_0"),
    [(1.9e-3, 1e-3), (8.1e-4, 1e-4), (1e-3, 1e-4), (1.0000001e-3, 1e-3), (3.0, 1.0), (1.0, 0.1), (2e-7, 1e-7)],
)
def test_lambda_0_is_the_largest_power_of_ten_below_alpha_max(alpha_max, lambda_0):
    alphas = alphas_of(alpha_max)
    assert alphas[0] == lambda_0
    assert len(alphas) == 4
    assert np.diff(np.log10(alphas)) == pytest.approx([-1, -1, -1])


def test_alphas_are_the_doubles_that_people_write():
    assert alphas_of(2e-3) == (1e-3, 1e-4, 1e-5, 1e-6)
    assert [alpha_text(alpha) for alpha in (1e-4, 1e-10, 1.0, 0.25)] == ["1e-4", "1e-10", "1e0", "0.25"]


# ------------------------------------------------------------------------------------------------- data


@pytest.fixture
def folder(tmp_path):
    small = bg.data.text_like(120, 200, 8.0, 4, seed=1)
    bg.save(small, tmp_path / "zeta.npz")
    dump_svmlight_file(small.X, small.y, str(tmp_path / "real-sim.svm"))
    (tmp_path / "README.txt").write_text("not data")
    (tmp_path / "notes.md").write_text("not data")
    return tmp_path


def test_a_folder_s_files_become_sets_the_paper_s_first(folder):
    assert list(find_files(folder)) == ["realsim", "zeta"]


def test_without_a_folder_the_paper_s_text_sets_are_generated(folder):
    assert [(s.name, s.path) for s in choose(None, [], False)] == [
        (n, None) for n in ("news20", "reuters", "realsim")
    ]
    assert [s.name for s in choose(None, [], True)] == list(paper.SETS)


def test_full_adds_look_alikes_of_what_the_folder_lacks(folder):
    assert [s.name for s in choose(folder, [], False)] == ["realsim", "zeta"]
    assert [s.name for s in choose(folder, [], True)] == ["realsim", "zeta", "news20", "reuters", "kdda"]


def test_named_sets_are_taken_from_the_folder_or_generated(folder):
    assert [(s.name, s.path is None) for s in choose(folder, ["zeta", "news20"], False)] == [
        ("zeta", False),
        ("news20", True),
    ]
    with pytest.raises(ValueError, match=r"'moon' is no known set; accepted are 'realsim', 'zeta', 'news20'"):
        choose(folder, ["moon"], False)


def test_two_files_of_one_set_are_refused(folder):
    bg.save(bg.data.text_like(120, 200, 8.0, 4), folder / "realsim.npz")
    with pytest.raises(ValueError, match=r"are both the set 'realsim'"):
        find_files(folder)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must name an existing folder, got .*absent"):
        find_files(tmp_path / "absent")


def test_generated_sets_are_called_generated():
    problem, found = prepare(Source("realsim", scale=0.005), raw=False, seed=0, n_threads=1)
    assert (problem.n_samples, found.generated, found.origin) == (362, True, "generated look-alike")
    html = make_page(Results(sets=[found])).html()
    assert "realsim is generated: only its size and sparsity resemble the real set." in html


def test_columns_get_unit_norm_unless_raw_and_empty_ones_stay(tmp_path):
    data = bg.data.text_like(150, 300, 6.0, 4, seed=3)
    X = data.X.tolil()
    X[:, 7] = 0
    bg.save(bg.Dataset(X.tocsr(), data.y), tmp_path / "some.npz")
    source = Source("some", tmp_path / "some.npz")
    problem, found = prepare(source, raw=False, seed=0, n_threads=1)
    norms = np.sqrt(problem.X.multiply(problem.X).sum(axis=0))
    assert np.all(np.isclose(norms, 1, atol=1e-6) | (norms == 0))
    assert found.empty_columns == np.count_nonzero(norms == 0) >= 1
    assert found.f_zero == pytest.approx(math.log(2))
    assert found.lambda_0 < found.alpha_max <= 10 * found.lambda_0
    raw, _ = prepare(source, raw=True, seed=0, n_threads=1)
    assert not np.allclose(np.sqrt(raw.X.multiply(raw.X).sum(axis=0)), norms)


# ------------------------------------------------------------------------------------------------- plan


def test_plan_of_four_sets_stays_within_a_quarter_of_an_hour_even_if_no_run_ends_early():
    jobs = make_plan(["news20", "reuters", "enron", "dorothea"], plan.SECONDS)
    assert sum(job.seconds for job in jobs) < 13.7 * 60  # the rest is for reading and drawing: about a minute


def test_seconds_scale_the_whole_plan():
    once, twice = (sum(job.seconds for job in make_plan(["reuters"], seconds)) for seconds in (1.0, 2.0))
    assert twice == pytest.approx(2 * once)


def test_plan_covers_the_paper_s_corners_and_every_kind():
    jobs = make_plan(["a", "b"], 1.0)
    grid = {(j.setting.n_blocks, j.setting.blocks_per_iter) for j in jobs if j.part == plan.DESIGN}
    assert {(1, 1), (0, 1), (0, 8), (32, 32)} <= grid  # Greedy, SCD, Shotgun, Thread-Greedy; 0 stands for p
    for part in (plan.FIGURE_2, plan.FOLLOW_UP):
        assert {j.setting.kind for j in jobs if j.part == part} == set(plan.kinds())
    assert "contiguous" not in plan.kinds()
    assert {"random", "clustered"} <= set(plan.kinds())


# ----------------------------------------------------------------------------------------------- clocks


def test_critical_path_is_the_heaviest_block_times_the_time_per_nonzero():
    run = made_up.run(plan.FIGURE_2, "clustered", [0.7, 0.6, 0.5], critical=15_000, touched=32_000, seconds=0.5)
    assert run.clock("wall", 2.0) == pytest.approx([0, 0.5, 1.0])
    assert run.clock("blocks", 2.0) == pytest.approx([0, 10 * 15_000 * 2e-9, 20 * 15_000 * 2e-9])
    assert run.clock("slices", 2.0) == pytest.approx([0, 10 * 1000 * 2e-9, 20 * 1000 * 2e-9])


def test_rates_of_the_model_are_those_of_the_heaviest_blocks():
    made = made_up.results(clustered_wins=True)
    assert rate_ratio(made, "reuters", "blocks") == pytest.approx(15)
    assert rate_ratio(made, "reuters", "slices") == pytest.approx(1)


def test_values_are_read_at_the_last_record_and_never_extrapolated():
    clock, values = np.array([0.0, 1.0, 2.0]), np.array([5.0, 4.0, 3.0])
    assert at(clock, values, 1.9) == 4
    assert at(clock, values, 2.0) == 3
    assert math.isnan(at(clock, values, 2.1))


def test_a_run_that_arrived_stays_where_it_was():
    ended = made_up.run(plan.FIGURE_2, "random", [0.7, 0.2], status="reached")
    stopped = made_up.run(plan.FIGURE_2, "random", [0.7, 0.2])
    assert ended.at_iteration(10_000) == 0.2
    assert math.isnan(stopped.at_iteration(10_000))


def test_overtaking_is_when_the_lead_changes_for_good():
    clock = np.arange(5.0)
    behind_then_ahead = np.array([9.0, 8.0, 5.0, 2.0, 1.0])
    other = np.array([9.0, 6.0, 4.0, 3.0, 3.0])
    assert overtaking(clock, behind_then_ahead, clock, other) == 3.0
    assert overtaking(clock, other, clock, behind_then_ahead) is None  # it was ahead, and lost
    assert overtaking(clock, other - 2, clock, other) is None  # ahead all the time
    late = 10 * clock[:3]
    assert (
        overtaking(late / 10, np.array([9.0, 9.5, 1.0]), late, np.array([9.0, 8.0, 7.0])) is None
    )  # b had not begun


def test_errors_are_relative_to_the_best_point_of_all_runs():
    made = Results(sets=[made_up.facts()])
    made.references.append(made_up.Reference("reuters", 1e-4, 0.2, 1e-8, "converged"))
    made.runs.append(made_up.run(plan.FOLLOW_UP, "random", [0.7, 0.4, 0.1]))
    assert made.best_known("reuters", 1e-4) == 0.1
    assert made.errors(made.runs[0]) == pytest.approx([1, 0.5, 0])
    assert made.seconds_to(made.runs[0], 0.51) == pytest.approx(0.01)
    assert math.isnan(made.best_known("reuters", 1e-5))


def test_page_of_made_up_results_has_all_sections_and_their_numbers():
    made = made_up.results(clustered_wins=True)
    made.remarks.append("moon is left out: no such file")
    html = make_page(made).html()
    for words in (
        "Two clocks",
        "design space",
        "Figure 2",
        "Table 2",
        "After the paper",
        "stands in for the paper&#x27;s Reuters",
        "moon is left out",
        "model of 32 threads, scan follows the blocks",
    ):
        assert words in html
    assert "19,473" in html  # the paper's
    assert "Interrupted" not in html
    made.interrupted = True
    assert "This run was interrupted" in make_page(made).html()


def test_the_paper_s_table_has_its_numbers_beside_ours_by_rank_and_by_value():
    ranked, valued = reuters_tables(made_up.results(clustered_wins=True))
    rows = {(row[0], row[2]): row for row in ranked.texts()}
    assert rows["1e-3", "clustered"][:5] == ["1e-3", "1e-4", "clustered", "6", "6"]  # its lambda_0 beside ours
    assert rows["1e-5", "random"][7] == "136"
    assert rows["1e-6", "random"][1] == "–"  # its table has three alphas
    rows = {(row[0], row[2]): row for row in valued.texts()}
    assert rows["1e-4", "clustered"][:5] == ["1e-4", "1e-4", "clustered", "6", "6"]
    assert rows["1e-6", "random"][7] == "136"
    assert rows["1e-3", "random"][1] == "–"
    same = made_up.results(clustered_wins=True)
    same.sets = [replace(same.sets[0], alphas=(1e-4, 1e-5, 1e-6, 1e-7))]
    assert len(reuters_tables(same)) == 1


def test_gains_compare_equal_cells_only():
    made = made_up.results(clustered_wins=True)
    ratios = gains(made, "clustered", "random", "joint", 1, 1e-2, "blocks")
    assert len(ratios) == 4
    assert ratios == pytest.approx([1 / 15] * 4)
    made.runs = [run for run in made.runs if run.setting.kind != "random"]
    assert gains(made, "clustered", "random", "joint", 1, 1e-2, "blocks") == []


def test_follow_up_sentences_count_scans_and_cells():
    text = " ".join(follow_up_sentences(made_up.results(clustered_wins=True)))
    assert (
        "Random blocks compared with clustered blocks by the model, scan follows the blocks: 15.00 times as fast"
        in text
    )
    assert "times fewer scans" in text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (math.nan, "–"), (12345, "12,345"), (0.123456, "0.1235"), ("x", "x")]
)
def test_values_are_shown_as_people_read_them(value, text):
    assert shown(value) == text


# ------------------------------------------------------------------------------------------------- runs


def test_a_set_that_cannot_be_read_is_left_out_and_said(folder):
    (folder / "broken.svm").write_text("1 a:b\n")
    experiments = Experiments(choose(folder, ["broken", "zeta"], False), False, 0, 1)
    experiments.load(lambda name: None)
    assert [f.name for f in experiments.results.sets] == ["zeta"]
    assert "broken is left out" in experiments.results.remarks[0]


def test_ctrl_c_inside_a_solve_ends_the_experiments(folder, monkeypatch):
    from blockgreedy.experiments import runs

    experiments = Experiments(choose(folder, ["zeta"], False), False, 0, 1)
    experiments.load(lambda name: None)

    def interrupted(problem, *arguments, **options):
        return replace(bg.solve(problem, max_iter=1), status="interrupted")

    monkeypatch.setattr(runs, "solve", interrupted)
    for part in (plan.REFERENCE, plan.FIGURE_2):
        job = next(job for job in make_plan(["zeta"], 0.1) if job.part == part)
        with pytest.raises(KeyboardInterrupt):
            experiments.do(job)


def test_runs_that_may_diverge_do_not_warn(folder, monkeypatch):
    from blockgreedy.experiments import runs

    def warns(*arguments, **options):
        warnings.warn("this may diverge", UserWarning, stacklevel=2)
        return bg.solve(*arguments, **options)

    monkeypatch.setattr(runs, "solve", warns)
    experiments = Experiments(choose(folder, ["zeta"], False), False, 0, 1)
    experiments.load(lambda name: None)
    experiments.do(next(job for job in make_plan(["zeta"], 0.01) if job.part == plan.FIGURE_2))
    assert experiments.results.runs[0].setting.update == "add"


def test_figure_2_goes_on_to_its_least_iterations_and_no_further(folder):
    experiments = Experiments(choose(folder, ["zeta"], False), False, 0, 1)
    experiments.load(lambda name: None)
    job = replace(
        next(job for job in make_plan(["other", "zeta"], 1.0) if job.part == plan.FIGURE_2), set_name="zeta"
    )
    experiments.do(replace(job, seconds=60.0, max_iter=None, enough=(90, 0.0)))  # no optimum known: it cannot arrive
    run = experiments.results.runs[0]
    assert run.last_iteration == 90
    assert run.status == "max_seconds"


def test_safe_steps_reach_their_error_and_stop_there(folder):
    experiments = Experiments(choose(folder, ["zeta"], False), False, 0, 1)
    experiments.load(lambda name: None)
    jobs = make_plan(["zeta"], 8.0)
    wanted = [job for job in jobs if job.part == plan.FOLLOW_UP and job.alpha_index == 0]
    for job in [next(job for job in jobs if job.part == plan.REFERENCE), wanted[0]]:
        experiments.do(job)
    run = experiments.results.runs[-1]
    assert run.status == "reached"
    assert experiments.results.errors(run)[-1] <= 1.01e-4
    assert run.setting.n_blocks == 32


def test_a_run_far_above_f_zero_ends_as_diverged(folder, monkeypatch):
    from blockgreedy.experiments import runs

    monkeypatch.setattr(runs, "_BLOWN", 1e-6)  # times f(0): every run is far above that
    experiments = Experiments(choose(folder, ["zeta"], False), False, 0, 1)
    experiments.load(lambda name: None)
    job = next(job for job in make_plan(["zeta"], 1.0) if job.part == plan.FIGURE_2)
    experiments.do(replace(job, seconds=60.0))
    run = experiments.results.runs[0]
    assert run.status == experiments.results.log[0]["status"] == "diverged"
    assert run.last_iteration == plan.LEAST_ITERATIONS  # it shows its start


def test_runs_without_an_iteration_and_unproven_optima_are_said(folder):
    experiments = Experiments(choose(folder, ["zeta"], False), False, 0, 1)
    experiments.load(lambda name: None)
    jobs = make_plan(["zeta"], 1e-9)
    reference = [job for job in jobs if job.part == plan.REFERENCE]
    figure = [job for job in jobs if job.part == plan.FIGURE_2]
    for job in (reference[0], *figure[:2]):
        experiments.do(job)
    assert experiments.results.find(plan.FIGURE_2) == []
    remarks = experiments.results.remarks
    assert remarks.count("zeta, figure 2: runs made no iteration within their time and count as not made.") == 1
    assert any("the optimum is proven to a relative gap of" in remark for remark in remarks)
    before = len(remarks)
    for job in (reference[0], figure[0]):
        experiments.do(replace(job, seconds=60.0, max_iter=3))
    assert len(remarks) == before
    assert len(experiments.results.find(plan.FIGURE_2)) == 1


def test_measured_load_is_of_columns_in_the_order_of_the_blocks(folder, monkeypatch):
    from blockgreedy.experiments import runs

    seen = []

    def looks(problem, *arguments, **options):
        seen.append((problem.X.shape, options["partition"], options["scan"], options["n_threads"]))
        return bg.solve(problem, *arguments, **options)

    monkeypatch.setattr(runs, "solve", looks)
    experiments = Experiments(choose(folder, ["zeta"], False), False, 0, 2)
    experiments.load(lambda name: None)
    for job in [job for job in make_plan(["zeta"], 0.1) if job.part == plan.LOAD]:
        experiments.do(job)
    assert {(scan, threads) for _, _, scan, threads in seen} == {("blocks", 1), ("blocks", 2)}
    assert all(np.all(np.diff(partition.block_of) >= 0) for _, partition, _, _ in seen)
    assert {run.setting.kind for run in experiments.results.runs} == set(plan.kinds())
    assert {run.n_threads for run in experiments.results.runs} == {1, 2}
