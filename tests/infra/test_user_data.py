"""What a node runs when it starts: the scripts as OpenTofu fills them in, run in a container of their own."""

from __future__ import annotations

import base64
import email
import json
import subprocess
from email.message import Message
from pathlib import Path

import pytest
import yaml

from tests.support.infra.catalogue import TOFU
from tests.support.infra.packages import find_program
from tests.support.infra.programs import get_shellcheck, get_tofu

TEMPLATES = TOFU / "modules" / "gpu-nodes" / "user-data"
PREPARE = TEMPLATES / "prepare.sh"
CLUSTER = {
    "name": "gpu-dev",
    "endpoint": "https://cluster.example",
    "certificate_authority": "Q0E=",
    "service_cidr": "10.100.0.0/16",
}
LABELS = {"gpu-type": "h100", "gpu-dev.io/profiling": "true"}
TAINTS = {"nvidia.com/gpu": "present:NoSchedule"}
STUBBED = ("systemctl", "modprobe", "apt-get", "dnf", "yum", "reboot")
"""What a script of a node might call beside its own files."""
SETTINGS = {"HAS_GPU": "true", "PROFILING": "true", "REGISTRY_MIRRORS": "ghcr.io=cache.example:5000"}


def render(system: str, tmp_path: Path) -> str:
    """The user data of a node, as `templatefile` makes it."""
    values = {
        "cluster": CLUSTER,
        "labels": LABELS,
        "taints": TAINTS,
        "environment": SETTINGS,
        "prepare": PREPARE.read_text(encoding="utf-8"),
    }
    (tmp_path / "values.json").write_text(json.dumps(values), encoding="utf-8")
    filled = f'templatefile("{TEMPLATES / system}.tftpl", jsondecode(file("{tmp_path / "values.json"}")))'
    done = subprocess.run(
        [get_tofu(), f"-chdir={tmp_path}", "console"],
        env={"HOME": str(tmp_path)},
        input=f"base64encode({filled})\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return base64.b64decode(json.loads(done.stdout)).decode()


def run_in_container(script: str, folder: Path) -> list[str]:
    """With an /etc and programs of its own, which only note that they were called; the calls in order."""
    stubs, etc = folder / "stubs", folder / "etc"
    (etc / "eks").mkdir(parents=True)
    stubs.mkdir()
    calls = folder / "calls"
    calls.touch()
    for program in (*(stubs / name for name in STUBBED), etc / "eks" / "bootstrap.sh"):
        program.write_text(f'#!/bin/sh\necho {program.name} "$@" >>/calls\n', encoding="utf-8")
        program.chmod(0o755)
    (folder / "script").write_text(script, encoding="utf-8")
    binds = ("--bind", calls, "/calls", "--bind", etc, "/etc", "--ro-bind", stubs, "/stubs")
    system = [word for name in ("bin", "lib", "lib64") for word in ("--symlink", f"usr/{name}", f"/{name}")]
    container = ("--unshare-all", "--ro-bind", "/usr", "/usr", *system, "--proc", "/proc", "--dev", "/dev")
    around = ("--clearenv", "--setenv", "PATH", "/stubs:/usr/bin")
    given = ("--ro-bind", folder / "script", "/script")
    bwrap = find_program("bubblewrap", "bwrap")
    subprocess.run([bwrap, *container, *binds, *given, *around, "bash", "/script"], check=True)
    return calls.read_text(encoding="utf-8").splitlines()


def check_files(etc: Path) -> None:
    option = (etc / "modprobe.d" / "nvidia-profiling.conf").read_text(encoding="utf-8")
    assert option == "options nvidia NVreg_RestrictProfilingToAdminUsers=0\n"
    hosts = (etc / "containerd" / "certs.d" / "ghcr.io" / "hosts.toml").read_text(encoding="utf-8")
    assert '[host."http://cache.example:5000"]' in hosts
    docker = json.loads((etc / "docker" / "daemon.json").read_text(encoding="utf-8"))
    assert docker == {"insecure-registries": ["cache.example:5000"]}


@pytest.mark.parametrize("system", ["al2", "ubuntu2204"])
def test_a_node_is_prepared_and_then_joins_with_its_labels(system: str, tmp_path: Path) -> None:
    script = render(system, tmp_path)
    prepared, joined = run_in_container(script, tmp_path)
    assert prepared == "systemctl enable kubelet"
    assert joined == (
        "bootstrap.sh gpu-dev --apiserver-endpoint https://cluster.example --b64-cluster-ca Q0E= "
        "--kubelet-extra-args --node-labels=gpu-dev.io/profiling=true,gpu-type=h100 "
        "--register-with-taints=nvidia.com/gpu=present:NoSchedule"
    )
    check_files(tmp_path / "etc")


def test_a_node_of_amazon_linux_2023_is_prepared_before_its_own_program_joins(tmp_path: Path) -> None:
    message = email.message_from_string(render("al2023", tmp_path))
    assert message.is_multipart()
    script, config = message.get_payload()
    assert isinstance(script, Message)
    assert isinstance(config, Message)
    assert run_in_container(str(script.get_payload()), tmp_path) == ["systemctl enable kubelet"]
    check_files(tmp_path / "etc")
    assert config.get_content_type() == "application/node.eks.aws"
    document = yaml.safe_load(str(config.get_payload()))
    assert document["kind"] == "NodeConfig"
    assert document["spec"]["cluster"]["apiServerEndpoint"] == CLUSTER["endpoint"]
    assert document["spec"]["kubelet"]["flags"] == [
        "--node-labels=gpu-dev.io/profiling=true,gpu-type=h100",
        "--register-with-taints=nvidia.com/gpu=present:NoSchedule",
    ]


@pytest.mark.parametrize("system", ["al2", "ubuntu2204"])
def test_the_whole_script_is_clean(system: str, tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text(render(system, tmp_path), encoding="utf-8")
    done = subprocess.run([get_shellcheck(), str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_script_of_a_node_is_clean() -> None:
    done = subprocess.run(
        [get_shellcheck(), "--severity=style", str(PREPARE)], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


def run_prepare(root: Path, **settings: str) -> list[str]:
    """Prepare a node below `root`, with programs that only note that they were called; the calls."""
    programs = root / "bin"
    programs.mkdir(parents=True)
    for name in ("systemctl", "modprobe"):
        program = programs / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >>"{root}/calls"\n', encoding="utf-8")
        program.chmod(0o755)
    path = f"{programs}:/usr/bin:/bin"
    subprocess.run(["bash", str(PREPARE)], env={"PATH": path, "ROOT": str(root), **settings}, check=True)
    return (root / "calls").read_text(encoding="utf-8").splitlines()


def test_profiling_is_allowed_before_the_driver_is_loaded(tmp_path: Path) -> None:
    calls = run_prepare(tmp_path, HAS_GPU="true", PROFILING="true", REGISTRY_MIRRORS="")
    option = (tmp_path / "etc/modprobe.d/nvidia-profiling.conf").read_text(encoding="utf-8")
    assert option == "options nvidia NVreg_RestrictProfilingToAdminUsers=0\n"
    assert calls == ["systemctl enable kubelet"]


def test_driver_of_the_image_is_loaded_again_with_the_option(tmp_path: Path) -> None:
    parameters = tmp_path / "proc/driver/nvidia/params"
    parameters.parent.mkdir(parents=True)
    parameters.write_text("RmProfilingAdminOnly: 1\n", encoding="utf-8")
    calls = run_prepare(tmp_path, HAS_GPU="true", PROFILING="true", REGISTRY_MIRRORS="")
    assert [call.split()[:2] for call in calls] == [
        ["modprobe", "-r"],
        ["modprobe", "nvidia"],
        ["systemctl", "enable"],
    ]


@pytest.mark.parametrize("has_gpu", ["true", "false"])
def test_profiling_is_not_allowed_elsewhere(tmp_path: Path, has_gpu: str) -> None:
    run_prepare(tmp_path, HAS_GPU=has_gpu, PROFILING="false", REGISTRY_MIRRORS="")
    assert not (tmp_path / "etc").exists()


def test_caches_are_trusted_and_their_hosts_remain_behind_them(tmp_path: Path) -> None:
    mirrors = "ghcr.io=cache.example:5000 docker.io=other.example:5000"
    run_prepare(tmp_path, HAS_GPU="false", PROFILING="false", REGISTRY_MIRRORS=mirrors)
    hosts = (tmp_path / "etc/containerd/certs.d/ghcr.io/hosts.toml").read_text(encoding="utf-8")
    assert 'server = "https://ghcr.io"' in hosts
    assert '[host."http://cache.example:5000"]' in hosts
    docker = json.loads((tmp_path / "etc/docker/daemon.json").read_text(encoding="utf-8"))
    assert docker == {"insecure-registries": ["cache.example:5000", "other.example:5000"]}
