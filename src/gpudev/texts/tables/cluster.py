"""The cluster: its API, its nodes and pods, and why a dev server does not start there."""

from __future__ import annotations

from gpudev.texts.template import Text, Values


def _say_whose_cluster(values: Values) -> str:
    return values.fill("The cluster is in the hands of another process. {what}").strip()


def _say_owner(values: Values) -> str:
    owner = "belongs to reservation {owner}" if values["owner"] else "is not ours"
    return values.fill("The {kind} entry {name} " + owner + ", not to {id}.")


def _say_missing_room(values: Values) -> str:
    node = "{node}" if values["node"] else "its node"
    return values.fill("The scheduler found no room on " + node + ": {words}.")


def _say_pod_end(values: Values) -> str:
    return f"The pod ended: {values['words'] or 'The cluster gives no reason'}."


def _say_exit(values: Values) -> str:
    told = ": {words}" if values["words"] else ""
    return values.fill("The dev server ended with code {code}" + told)


def _say_silence(values: Values) -> str:
    since = " since {since:clock}" if values["since"] else ""
    ssh = "still answers" if values["answers"] else "does not answer"
    return values.fill("The node {node} has not reported to the cluster" + since + f"; SSH {ssh}.")


_KUBECONFIG = "Set KUBECONFIG or GPU_DEV_KUBERNETES_KUBECONFIG to one that kubectl can use."

TEXTS = {
    "cluster_said": Text("{words}."),
    "member_told": Text("{member} on {node}: {what}"),
    "cluster_of_another_process": Text(_say_whose_cluster, hint="The controller does the rest."),
    # the API of Kubernetes
    "kubernetes_not_open": Text("The Kubernetes cluster is not open."),
    "kubernetes_api_unavailable": Text("The Kubernetes API does not answer as it should: {why}."),
    "answered_with_status": Text("status {status}"),
    "answer_not_object": Text("what it sent is no object"),
    "answer_not_list": Text("what it sent is no list"),
    "connect_timeout": Text("the connection took too long"),
    "answer_timeout": Text("no answer came in time"),
    "watch_cut_off": Text("a watch was cut off in the middle of a line"),
    "namespace_too_new": Text("The namespace takes no pods yet: {why}."),
    "cluster_forbidden": Text(
        "The cluster does not let us: {why}.",
        hint="Give the service account the roles in deploy/kubernetes/rbac.yaml.",
    ),
    "cluster_refused": Text("The cluster refuses what we sent ({status}): {why}."),
    "kubeconfig_without_user": Text("The kubeconfig names no user.", hint=_KUBECONFIG),
    "kubeconfig_without_context": Text("The kubeconfig has no current context.", hint=_KUBECONFIG),
    "kubeconfig_unusable": Text("The kubeconfig cannot be used: {words}.", hint=_KUBECONFIG),
    "cluster_object_of_another": Text(_say_owner),
    "cluster_object_going": Text("{name} is on its way out; it is made again when it is gone."),
    # programs and logs of a dev server
    "node_of_pod_silent": Text("The node of {pod} does not answer."),
    "program_not_run": Text("A program could not be run on the dev server: {why}."),
    "program_timeout": Text("it took more than {seconds:.0f} seconds"),
    "log_without_server": Text("Reservation {id:short} has no dev server now, so no log was found."),
    "log_not_there_yet": Text("No log was found yet: {why}."),
    # how a pod stands
    "node_refused_server": Text("The node refused the server: {words}."),
    "node_takes_no_servers": Text("The node {node} takes no new servers."),
    "scheduler_found_no_room": Text(_say_missing_room),
    "image_fetching": Text("Fetching the image: {image}."),
    "image_unavailable": Text("The image {image} is not to be had: {words}."),
    "image_pull_retried": Text("The image {image} cannot be fetched; it is tried again."),
    "image_pull_given_up": Text("The image {image} could not be fetched within {limit:duration}."),
    "volume_not_mounted_yet": Text("A volume cannot be mounted yet: {words}."),
    "sandbox_not_made_yet": Text("The node cannot make the container yet: {words}."),
    "container_not_made": Text("The container cannot be made: {words}."),
    "container_silent": Text("The container runs, and does not answer on SSH yet."),
    # how it ended
    "pod_ended": Text(_say_pod_end),
    "evicted_without_reason": Text("The node gave no reason."),
    "node_shut_down": Text("The node was shut down."),
    "node_left_cluster": Text("The node {node} is no longer part of the cluster."),
    "container_ended": Text("{how}."),
    "container_restarted": Text("{how}. It was started again; what ran in it is gone."),
    "container_restarted_at": Text("{how} at {at:clock}. It was started again; what ran in it is gone."),
    "ended_out_of_memory": Text("The dev server took more memory than its share and was ended"),
    "ended_with_code": Text(_say_exit),
    # of a server that runs
    "node_silent": Text(_say_silence),
    "service_removed": Text(
        "The Service {service} was removed, so the dev server is not reached from outside."
    ),
}
