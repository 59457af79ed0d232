"""`gpu-dev config`: see and change what is configured on this machine. No server is asked."""

from __future__ import annotations

from gpudev.cli.lazy import Entry, LazyGroup

command = LazyGroup(
    {
        "show": Entry(
            "gpudev.cli.commands.config_show", "Show each setting, and where its value comes from."
        ),
        "set": Entry("gpudev.cli.commands.config_set", "Set api_url, region or github_user."),
        "unset": Entry("gpudev.cli.commands.config_unset", "Forget one of them."),
        "environment": Entry(
            "gpudev.cli.commands.config_environment", "Choose prod, test, local or your own."
        ),
        "ssh-include": Entry(
            "gpudev.cli.commands.config_ssh_include", "Let plain ssh know your dev servers."
        ),
    },
    {},
    name="config",
    help="""Settings of yours on this machine.

    api_url and region belong to the chosen environment, github_user to you. Environment variables come
    before them: GPU_DEV_API_URL, AWS_REGION, AWS_DEFAULT_REGION and GPU_DEV_GITHUB_USER.
    """,
)
