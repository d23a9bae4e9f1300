"""The pipeline of streams: its stages end to end, resumed, and which family a design is of."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tools.pack_model import pack
from typer.testing import CliRunner

import sphynx
from sphynx.cli.main import app
from sphynx.data.images import Data, ImageSet, make_data
from sphynx.design import family
from sphynx.design.family import asked_family, better_family, read_orders
from sphynx.design.settings import DesignSettings, read_budget
from sphynx.design.stream_order import StreamRequest, taught_recipe, teacher_design
from sphynx.design.stream_pipeline import StreamPipeline
from sphynx.design.stream_results import StreamDesignResult
from sphynx.errors import InputError
from sphynx.network.trained import load_model, load_trained
from sphynx.report.sources import read_sources
from sphynx.run import environment
from sphynx.run.progress import QUIET
from sphynx.run.work import Work
from sphynx.search.placement.recipe import load_placement_recipe
from sphynx.space.prices import Prices
from sphynx.space.stream import StreamDesign
from sphynx.train.recipe import load_recipe
from sphynx.zoo.chain import chain_of

SHORT = {"epochs": 2, "batch_size": 12, "crop": False, "warmup_epochs": 0, "learning_rate": 0.02, "norm_batches": 0}
VIEWS = load_recipe("frontier", {**SHORT, "view_epochs": 1, "mixup": 0.0, "cutmix": 0.0, "ema": 0.0})


def bars(count: int, seed: int) -> ImageSet:
    """Class k is bright in the two columns behind 2 k, over noise."""
    images = torch.randint(0, 120, (count, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    labels = torch.arange(count) % 3
    for number, label in enumerate(labels.tolist()):
        images[number, 0, :, 2 * label : 2 * label + 2] += 130
    return ImageSet(images, labels, ("left", "middle", "right"))


def data() -> Data:
    return dataclasses.replace(make_data("bars", bars(48, 0), bars(30, 1), where="bars"), mirrored=False)


def pipeline(out: Path, *, resume: bool = False, **changes: Any) -> StreamPipeline:
    request = StreamRequest(512, VIEWS, load_recipe("smoke", {"epochs": 1, "batch_size": 12, "crop": False}))
    request = dataclasses.replace(request, **changes)
    return StreamPipeline(request, data(), out, Work(device=torch.device("cpu"), resume=resume, voice=QUIET))


def test_teachers_views_allocation_and_seeds_leave_a_network(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "teachers": 2,
        "seeds": 2,
        "allocating": load_placement_recipe("taught", {"epochs": 1}),
    }
    result = pipeline(tmp_path, **changes).run()
    assert list(result.minutes) == ["estimate", "teacher", "allocation", "views", "training"]
    assert [one.name for one in result.teachers] == ["WideResNet, seed 0", "WideResNet, seed 1"]
    assert result.allocated_by == "gumbel" and result.relus <= 512 and len(result.accuracies) == 2
    design = StreamDesign.load(tmp_path / "design.json")
    assert str(design) == result.stages and load_model(tmp_path).design == design
    kept = json.loads((tmp_path / "result.json").read_text())
    assert StreamDesignResult.from_json(kept) == result
    config = json.loads((tmp_path / "training" / "seed-1" / "config.json").read_text())
    assert config["teachers"] == 2 and config["teacher"]["format"] == "sphynx-wide-resnet/1"
    # The views of the search left images out, those of the training none.
    held_out, whole = ((tmp_path / name / "views.safetensors").stat().st_size for name in ("allocation", "."))
    assert held_out < whole
    sources = read_sources([tmp_path])
    assert not sources.designs and sorted(one.role for one in sources.training) == ["own"] * 2 + ["teacher"] * 2
    again = pipeline(tmp_path, resume=True, **changes).run()
    assert dataclasses.replace(again, minutes={}) == dataclasses.replace(result, minutes={})
    with pytest.raises(InputError, match="another teachers"):
        pipeline(tmp_path, resume=True, **{**changes, "teachers": 1})


def test_allocations_may_cost_as_many_seconds_as_the_plan(tmp_path: Path) -> None:
    planned = pipeline(tmp_path / "plan").design
    blocks = tuple(3e-3 / (1 + number) for number in range(planned.blocks))
    prices = Prices(str(planned), "lan", "gmw", "a machine", 0.1, blocks, "total")
    prices.save(tmp_path / "prices.json")
    searched = settings(allocation="search", prices=tmp_path / "prices.json")
    order = read_orders(searched).stream
    assert order is not None
    request = order.request(data())
    made = StreamPipeline(request, data(), tmp_path / "run", Work(voice=QUIET))
    assert request.allocating is not None and len({one.relus for one in made._candidates.values()}) > 1
    assert all(prices.seconds(one) <= prices.seconds(planned) + 1e-9 for one in made._candidates.values())
    with pytest.raises(InputError, match="no allocation is searched"):
        read_orders(dataclasses.replace(searched, allocation="planned"))


def test_a_given_teacher_answers_in_every_step_where_the_recipe_keeps_no_views(tmp_path: Path) -> None:
    taught = load_recipe("distil-small", {**SHORT, "epochs": 1})
    first = pipeline(tmp_path / "first", training=taught).run()
    assert list(first.minutes) == ["estimate", "teacher", "training"] and first.allocated_by == "plan"
    teacher = tmp_path / "first" / "teacher" / "seed-0"
    settings = DesignSettings(relu_budget=512, out=tmp_path, teacher=teacher)
    order = read_orders(settings).stream
    assert order is not None
    request = dataclasses.replace(order.request(data()), training=taught)
    given = StreamPipeline(request, data(), tmp_path / "second", Work(voice=QUIET)).run()
    assert given.teachers[0].name == str(teacher) and given.accuracies == first.accuracies
    loaded = dataclasses.replace(settings, teacher=[load_trained(teacher)])
    named = read_orders(loaded).stream
    assert named is not None and named.request(data()).to_json()["given"] == request.to_json()["given"]


def test_a_time_budget_shortens_all_stages(tmp_path: Path) -> None:
    long = dataclasses.replace(VIEWS, epochs=4000, view_epochs=4000)
    estimates = pipeline(tmp_path, training=long, time_budget=20.0).schedule()
    assert [one.stage for one in estimates] == ["teacher", "views", "training"]
    assert sum(one.seconds for one in estimates) <= 20 and estimates[-1].epochs < 4000
    with pytest.raises(InputError, match="smallest schedule") as refused:
        pipeline(tmp_path, training=long, time_budget=1e-6).schedule()
    assert "`teacher`" in str(refused.value.remedy)


def settings(**changes: Any) -> DesignSettings:
    return DesignSettings(**{"relu_budget": 512, "out": "out", **changes})


def test_the_family_is_what_is_named_or_what_the_settings_belong_to() -> None:
    assert asked_family(settings()) == "auto" and asked_family(settings(family="stream")) == "stream"
    assert asked_family(settings(reduce_at=(0, 1))) == "cells" == asked_family(settings(settings={"cells.epochs": 1}))
    assert asked_family(settings(allocation="search")) == "stream"
    for wrong, word in (
        ({"family": "cells", "teachers": 2}, "`teachers` has no effect"),
        ({"family": "stream", "strategy": "gaea"}, "`strategy` has no effect"),
        ({"strategy": "gaea", "teachers": 2}, "belongs to cells"),
    ):
        with pytest.raises(InputError, match=word):
            read_orders(settings(**wrong))
    for alone, word in (
        ({"settings": {"allocation.epochs": 1}}, "no allocation is searched"),
        ({"teachers": 2, "teacher": "nowhere"}, "nowhere"),
        ({"settings": {"views.epochs": 1}, "family": "stream"}, "does not name a stage"),
    ):
        with pytest.raises(InputError, match=word):
            read_orders(settings(**alone))


def test_many_images_and_a_budget_that_streams_fit_make_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    assert better_family(read_budget(settings()), data())[0] == "cells"
    assert taught_recipe("auto", {}, data()).label_weight == 0 and teacher_design(data()).width == 2
    monkeypatch.setattr(family, "FEW_IMAGES", 10)
    assert better_family(read_budget(settings()), data())[0] == "stream"
    chosen, why = better_family(read_budget(settings(relu_budget=3)), data())
    assert chosen == "cells" and "no stream network" in why


def test_the_library_designs_a_stream(tmp_path: Path) -> None:
    short = {"training.epochs": 1, "teacher.epochs": 1}
    result = sphynx.design_network(data(), relu_budget=512, family="stream", settings=short, out=tmp_path)
    assert isinstance(result, StreamDesignResult) and result.training.epochs == 1
    assert sphynx.load_network(tmp_path).design.account.total.relus == result.relus


@pytest.mark.slow
def test_the_whole_way_on_digits_leaves_what_can_be_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPHYNX_COMMIT", "0123456789ab")
    environment._commit.cache_clear()
    out = tmp_path / "stream"
    words = ["design", "--data", "digits", "--relu-budget", "1k", "--family", "stream"]
    shown = CliRunner().invoke(app, [*words, "-o", str(out), "--device", "cpu"], catch_exceptions=False)
    assert shown.exit_code == 0 and "WideResNet, seed 0" in shown.stdout, shown.output
    result = StreamDesignResult.from_json(json.loads((out / "result.json").read_text()))
    assert result.relus <= 1000 and result.accuracy > 0.98, result.accuracy
    commands, teacher = tmp_path / "commands", out / "teacher" / "seed-0"
    commands.write_text(" ".join(["sphynx", *words, "-o", "out\n"]))
    made = "out/training/seed-0"
    packed = pack(
        tmp_path / "stream/training/seed-0", "digits", tmp_path, teachers=[teacher], commands=commands, makes=made
    )
    chain = chain_of(json.loads((packed / "card.json").read_text()))
    assert chain is not None and [one.network for one in chain.trainings] == ["wide-resnet", "stream"]
    environment._commit.cache_clear()
