"""The test cluster itself: what other tests may rely on."""

from __future__ import annotations

import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.manifests import SSH_PORT, headless, node_port, pod, sshd
from tests.support.kubernetes.access import GPU, Access, is_ready
from tests.support.kubernetes.banner import BANNER
from tests.support.kubernetes.cluster import GPU_TYPES, GPUS_A_NODE, Cluster
from tests.support.kubernetes.images import EXIT
from tests.support.kubernetes.processes import ClusterFailed
from tests.support.kubernetes.remains import list_remains
from tests.support.machine import wait_for


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ssh") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


def ssh(key: Path, address: str, port: int, command: str) -> subprocess.CompletedProcess[str]:
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": "2",
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
    }
    flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    destination = ["-i", str(key), "-p", str(port), f"dev@{address}"]
    return subprocess.run(
        ["ssh", "-F", "none", *flags, *destination, command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def read_banner(address: str, port: int) -> bytes:
    """The first line that an address says, or nothing if nobody answers yet."""
    try:
        with socket.create_connection((address, port), timeout=2) as connection:
            return connection.recv(len(BANNER))
    except OSError:
        return b""


def get_node_port(access: Access, namespace: str, name: str) -> int:
    service = access.get("service", name, f"--namespace={namespace}")
    return int(service["spec"]["ports"][0]["nodePort"])


def get_address(access: Access, namespace: str, name: str) -> str:
    return str(access.get("pod", name, f"--namespace={namespace}")["status"]["podIP"])


def test_both_nodes_are_ready_and_have_gpus(access: Access, cluster: Cluster) -> None:
    for name, gpu_type in GPU_TYPES.items():
        node = access.get("node", name)
        assert is_ready(node)
        assert node["metadata"]["labels"]["gpu-type"] == gpu_type
        assert node["status"]["allocatable"][GPU] == str(GPUS_A_NODE)


@pytest.mark.parametrize("node", GPU_TYPES)
def test_ssh_through_the_node_port_of_every_node(
    access: Access, cluster: Cluster, namespace: str, key: Path, node: str
) -> None:
    public = key.with_suffix(".pub").read_text().strip()
    access.create([sshd("server", node, public), node_port("server")], namespace)
    port = get_node_port(access, namespace, "server")
    access.wait("pod/server", "condition=Ready", namespace)
    for entrance in cluster.nodes.values():
        wait_for(partial(read_banner, str(entrance.address), port), f"{entrance.name}:{port} answers")
        done = ssh(key, str(entrance.address), port, "hostname && id --user --name")
        assert done.stdout.split() == ["server", "dev"], done.stderr


def test_pod_finds_a_pod_of_the_other_node_by_name(
    access: Access, cluster: Cluster, namespace: str, key: Path
) -> None:
    public = key.with_suffix(".pub").read_text().strip()
    here, there = GPU_TYPES
    access.create(
        [sshd("server", here, public), headless("server"), pod("asker", there, "sleep", "inf")], namespace
    )
    access.wait("pod/server", "condition=Ready", namespace)
    access.wait("pod/asker", "condition=Ready", namespace)

    def ask(command: str) -> str:
        # A failure is "not yet": sshd has only been started.
        return access.kubectl(
            "exec", f"--namespace={namespace}", "asker", "--", "sh", "-c", f"{command} || true"
        )

    found = wait_for(partial(ask, "getent hosts server"), "the name of the service resolves")
    assert found.split() == [
        get_address(access, namespace, "server"),
        f"server.{namespace}.svc.cluster.local",
    ]
    scanned = wait_for(partial(ask, "ssh-keyscan -t ed25519 server"), "sshd answers by that name")
    assert scanned.startswith("server ssh-ed25519 ")


def test_exec_and_logs(access: Access, namespace: str) -> None:
    access.create([pod("talker", None, "sh", "-c", "echo it talks; exec sleep inf")], namespace)
    access.wait("pod/talker", "condition=Ready", namespace)
    assert access.kubectl("exec", f"--namespace={namespace}", "talker", "--", "id", "-un") == "root\n"
    wait_for(lambda: access.kubectl("logs", f"--namespace={namespace}", "talker"), "there is a log")
    assert access.kubectl("logs", f"--namespace={namespace}", "talker") == "it talks\n"


def test_image_that_ends_at_once(access: Access, cluster: Cluster, namespace: str) -> None:
    ending = pod("ending", None, "/exit", "3", image=EXIT.name)
    access.create([ending], namespace)
    access.wait("pod/ending", "jsonpath={.status.phase}=Failed", namespace)
    state = access.get("pod", "ending", f"--namespace={namespace}")["status"]["containerStatuses"][0]["state"]
    assert state["terminated"]["exitCode"] == 3


def test_pod_waits_for_gpus_that_nobody_has(access: Access, cluster: Cluster, namespace: str) -> None:
    node = next(iter(GPU_TYPES))
    resources = {"limits": {GPU: "8"}}
    access.set_gpus(node, 4)
    try:
        access.create([pod("greedy", node, "sleep", "inf", resources=resources)], namespace)
        access.wait("pod/greedy", "jsonpath={.status.conditions[0].reason}=Unschedulable", namespace)
        access.set_gpus(node, 8)
        access.wait("pod/greedy", "condition=Ready", namespace)
    finally:
        access.set_gpus(node, GPUS_A_NODE)


def test_service_account_may_do_what_its_role_allows_alone(access: Access, namespace: str) -> None:
    here = f"--namespace={namespace}"
    access.kubectl("create", "serviceaccount", "reader", here)
    access.kubectl("create", "role", "reader", "--verb=list", "--resource=pods", here)
    access.kubectl(
        "create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:reader", here
    )
    kubeconfig = access.kubeconfig_for("reader", namespace)
    reader = Access(kubeconfig, access.kubectl_program, access.scratch)
    assert reader.get("pods")["items"] == []
    with pytest.raises(ClusterFailed, match="forbidden"):
        reader.get("pods", "--namespace=default")
    with pytest.raises(ClusterFailed, match="forbidden"):
        reader.get("secrets")


def test_simulated_node_runs_a_pod_that_answers(access: Access, cluster: Cluster, namespace: str) -> None:
    _, second = cluster.add_simulated_nodes("b200", count=2, gpus=8)
    try:
        pods = [
            pod("simulated", second, "sleep", "inf", resources={"limits": {GPU: "8"}}),
            pod("real", next(iter(GPU_TYPES)), "sleep", "inf"),
        ]
        access.create([*pods, node_port("simulated")], namespace)
        access.wait("pod/simulated", "condition=Ready", namespace)
        address = get_address(access, namespace, "simulated")
        assert read_banner(address, SSH_PORT) == BANNER
        assert read_banner(address, 2222) == BANNER
        # A NodePort of a real node leads there, too, and kwok leaves the pods of real nodes alone.
        port = get_node_port(access, namespace, "simulated")
        entrance = str(access.get("node", second)["status"]["addresses"][0]["address"])
        wait_for(lambda: read_banner(entrance, port) == BANNER, f"{entrance}:{port} answers")
        access.wait("pod/real", "condition=Ready", namespace)
        assert access.kubectl("exec", f"--namespace={namespace}", "real", "--", "hostname") == "real\n"
    finally:
        cluster.remove_simulated_nodes()


def test_api_server_stops_and_starts_and_pods_run_on(
    access: Access, cluster: Cluster, namespace: str, key: Path
) -> None:
    public = key.with_suffix(".pub").read_text().strip()
    access.create([sshd("server", "node-b", public)], namespace)
    access.wait("pod/server", "condition=Ready", namespace)
    address = get_address(access, namespace, "server")
    wait_for(lambda: read_banner(address, SSH_PORT), "sshd answers")
    cluster.control_plane.api_server.stop()
    try:
        with pytest.raises(ClusterFailed):
            access.get("nodes")
        assert ssh(key, address, SSH_PORT, "echo still here").stdout == "still here\n"
    finally:
        cluster.control_plane.api_server.start()
    assert get_address(access, namespace, "server") == address


def test_kubelet_is_killed_and_started_and_pods_run_on(
    access: Access, cluster: Cluster, namespace: str, key: Path
) -> None:
    public = key.with_suffix(".pub").read_text().strip()
    access.create([sshd("server", "node-b", public)], namespace)
    access.wait("pod/server", "condition=Ready", namespace)
    address = get_address(access, namespace, "server")
    wait_for(lambda: read_banner(address, SSH_PORT), "sshd answers")
    cluster.nodes["node-b"].kubelet.stop()
    try:
        access.wait("node/node-b", "condition=Ready=Unknown")
        assert ssh(key, address, SSH_PORT, "echo still here").stdout == "still here\n"
    finally:
        cluster.start_kubelet("node-b")
    assert access.get("node", "node-b")["status"]["allocatable"][GPU] == str(GPUS_A_NODE)


def test_node_loses_its_power_and_comes_back(
    access: Access, cluster: Cluster, namespace: str, key: Path
) -> None:
    public = key.with_suffix(".pub").read_text().strip()
    access.create([sshd("before", "node-b", public)], namespace)
    access.wait("pod/before", "condition=Ready", namespace)
    address = get_address(access, namespace, "before")
    wait_for(partial(read_banner, address, SSH_PORT), "sshd answers")
    cluster.stop_node("node-b")
    try:
        assert read_banner(address, SSH_PORT) == b""
    finally:
        cluster.start_node("node-b")
    access.wait("pod/before", "condition=Ready=false", namespace)
    access.create([pod("after", "node-b", "sleep", "inf")], namespace)
    access.wait("pod/after", "condition=Ready", namespace)
    assert access.kubectl("exec", f"--namespace={namespace}", "after", "--", "hostname") == "after\n"


def test_host_port_answers_on_its_own_node_alone(
    access: Access, cluster: Cluster, namespace: str, key: Path
) -> None:
    public = key.with_suffix(".pub").read_text().strip()
    servers = [sshd(node, node, public) for node in cluster.nodes]
    for server in servers:
        server["spec"]["containers"][0]["ports"] = [{"containerPort": SSH_PORT, "hostPort": 2200}]
    access.create(servers, namespace)
    for name, node in cluster.nodes.items():
        wait_for(partial(read_banner, str(node.address), 2200), f"{name} answers")
        assert ssh(key, str(node.address), 2200, "hostname").stdout.strip() == name


def test_cordoned_and_removed_node_comes_back(access: Access, cluster: Cluster) -> None:
    access.cordon("node-b")
    assert access.get("node", "node-b")["spec"]["unschedulable"] is True
    access.uncordon("node-b")
    access.remove_node("node-b")
    with pytest.raises(ClusterFailed, match="not found"):
        access.get("node", "node-b")
    cluster.nodes["node-b"].kubelet.stop()
    cluster.start_kubelet("node-b")
    assert access.get("node", "node-b")["metadata"]["labels"]["gpu-type"] == GPU_TYPES["node-b"]


def test_down_removes_what_an_interrupted_up_has_left(cluster: Cluster) -> None:
    temporary = Cluster("temp")
    command = [sys.executable, "-m", "tests.support.kubernetes", "up", "--name", temporary.name]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as starting:
        node = temporary.nodes["node-b"].containerd.process
        wait_for(node.find, "containerd runs")
        starting.kill()
    temporary.down()
    assert list_remains(temporary) == ()


def test_down_leaves_nothing(cluster: Cluster) -> None:
    """By command line, so that one process takes down what another has brought up."""
    temporary = Cluster("temp")
    command = [sys.executable, "-m", "tests.support.kubernetes"]
    try:
        subprocess.run([*command, "up", "--name", temporary.name], check=True, capture_output=True)
        temporary.add_simulated_nodes("h200", count=1, gpus=8)
        temporary.access.create([pod("left", "node-a", "sleep", "inf")])
        temporary.access.wait("pod/left", "condition=Ready")
        kinds = {line.split()[0] for line in list_remains(temporary)}
        assert kinds == {"process", "mount", "link", "route", "cgroup", "folder"}
    finally:
        subprocess.run([*command, "down", "--name", temporary.name], check=True, capture_output=True)
    assert list_remains(temporary) == ()
