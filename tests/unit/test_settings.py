"""Settings that cannot work together are refused at the start, and no secret is told with it."""

from __future__ import annotations

import pytest
from pydantic import SecretStr, ValidationError

from gpudev.settings.access import GitHubSettings

SECRET = "token-of-the-server"


@pytest.mark.parametrize(
    "given,named",
    [
        ({"organisation": "acme"}, "GPU_DEV_GITHUB_TOKEN"),
        ({"repository": "acme/models", "token": SecretStr("")}, "GPU_DEV_GITHUB_TOKEN"),
        ({"team": "gpu", "token": SecretStr(SECRET)}, "GPU_DEV_GITHUB_ORGANISATION"),
        ({"repository": "models", "token": SecretStr(SECRET)}, "repository"),
    ],
)
def test_a_check_at_github_that_cannot_work_is_refused(given: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError) as caught:
        GitHubSettings(**given)  # type: ignore[arg-type]  # the fields are of several types
    assert named in str(caught.value)
    assert SECRET not in str(caught.value)


def test_without_a_name_nobody_is_checked_at_github() -> None:
    assert not GitHubSettings().wants_check
    assert GitHubSettings(organisation="acme", token=SecretStr(SECRET)).wants_check
    assert SECRET not in repr(GitHubSettings(token=SecretStr(SECRET)))
