"""deploy/kubernetes: valid for the Kubernetes schema where a validator is installed, and consistent in any case."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command

from sphynx.cli.main import app
from sphynx.service.credentials import FILES
from tests.service.processes import ROOT

yaml = pytest.importorskip("yaml")


@pytest.fixture(scope="module")
def parts() -> dict[str, dict[str, Any]]:
    texts = [path.read_text() for path in sorted((ROOT / "deploy" / "kubernetes").iterdir())]
    return {part["kind"]: part for text in texts for part in yaml.safe_load_all(text)}


@pytest.fixture(scope="module")
def pod(parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = parts["StatefulSet"]["spec"]["template"]["spec"]
    return found


def test_every_part_is_valid(parts: dict[str, dict[str, Any]]) -> None:
    validator = pytest.importorskip("kubernetes_validate")
    for part in parts.values():
        validator.validate(part, validator.latest_version(), strict=True)


def test_a_headless_service_finds_the_pods(parts: dict[str, dict[str, Any]]) -> None:
    service, replicas = parts["Service"]["spec"], parts["StatefulSet"]["spec"]
    labels = replicas["template"]["metadata"]["labels"]
    assert service["clusterIP"] == "None" and replicas["serviceName"] == parts["Service"]["metadata"]["name"]
    assert replicas["selector"]["matchLabels"] == labels and service["selector"].items() <= labels.items()
    assert parts["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == service["selector"]


def test_a_replica_sees_its_own_secret_alone(parts: dict[str, dict[str, Any]], pod: dict[str, Any]) -> None:
    name = parts["StatefulSet"]["metadata"]["name"]
    secrets = [volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume]
    assert secrets == [f"{name}-keys", "sphynx-metrics"] and parts["StatefulSet"]["spec"]["replicas"] == 1
    text = (ROOT / "deploy" / "kubernetes" / "replica.yaml").read_text()
    (another,) = yaml.safe_load_all(text.replace(name, "sphynx-b"))  # as the guide's sed makes it
    assert another["spec"]["selector"]["matchLabels"]["replica"] == another["metadata"]["name"] == "sphynx-b"
    assert name not in str(another)


def test_every_replica_has_a_volume_of_its_own(parts: dict[str, dict[str, Any]], pod: dict[str, Any]) -> None:
    claims = {claim["metadata"]["name"] for claim in parts["StatefulSet"]["spec"]["volumeClaimTemplates"]}
    volumes = claims | {volume["name"] for volume in pod["volumes"]}
    mounts = {
        mount["name"]: mount["mountPath"]
        for container in (*pod["initContainers"], *pod["containers"])
        for mount in container["volumeMounts"]
    }
    assert set(mounts) == volumes
    (state,) = (text.removeprefix("--state=") for text in pod["containers"][0]["args"] if text.startswith("--state="))
    assert state.startswith(mounts["state"] + "/") and "state" in claims


def test_the_server_is_started_with_flags_that_it_has(pod: dict[str, Any]) -> None:
    (server,) = pod["containers"]
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    verb, folder, *flags = server["args"]
    serve.make_context(verb, [folder, *flags])  # raises where a flag or a value is none
    grace_s = next(int(flag.partition("=")[2]) for flag in flags if flag.startswith("--grace="))
    assert pod["terminationGracePeriodSeconds"] > grace_s


def test_the_key_folder_is_complete(pod: dict[str, Any]) -> None:
    (script,) = pod["initContainers"][0]["args"]
    assert all(f"/keys/{name}" in script for name in FILES) and "umask 077" in script
