"""The OpenTofu configuration, by OpenTofu itself; the providers are stand-ins that know every argument."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import tfparse

from tests.support.golden import check_file
from tests.support.infra.catalogue import CATALOGUE_FILE, TOFU, write_catalogue
from tests.support.infra.tofu import Checkout, TofuRefused, copy_deployment

NAMES_THAT_OPERATORS_SET = {
    "aws_region",
    "ghcr_token",
    "ghcr_username",
    "gpu_instance_count",
    "grafana_admin_password",
    "instance_type",
    "supported_gpu_types",
}
NAMES_THAT_OPERATORS_READ = {
    "api_service_loadbalancer_url",
    "api_service_url",
    "api_service_url_loadbalancer",
    "cli_config",
    "ecr_pull_through_cache_urls",
    "ecr_repository_url",
    "eks_cluster_arn",
    "eks_cluster_endpoint",
    "eks_cluster_name",
    "placement_group_names",
    "security_group_id",
    "subnet_id",
    "supported_gpu_types",
    "vpc_id",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    made = copy_deployment(tmp_path_factory.mktemp("tofu"))
    made.init()
    return made


@pytest.fixture
def spoilt(checkout: Checkout, tmp_path: Path) -> Checkout:
    """A copy that a test may break; it is initialised already."""
    shutil.copytree(checkout.folder, tmp_path / "copy", symlinks=True)
    return Checkout(tmp_path / "copy")


def test_files_are_formatted(checkout: Checkout) -> None:
    assert checkout.run("fmt", "-check", "-recursive", "-no-color") == ""


def test_configuration_is_valid(checkout: Checkout) -> None:
    assert json.loads(checkout.run("validate", "-json"))["diagnostics"] == []


def test_its_own_tests_pass(checkout: Checkout) -> None:
    """`deploy/tofu/tests`: plans with mocked providers."""
    assert "0 failed" in checkout.run("test", "-no-color")


@pytest.mark.parametrize(
    "text, complaint",
    [
        ('resource "aws_vpc" "x" { cidr_blok = "10.0.0.0/16" }', "cidr_blok"),
        ('resource "aws_vpcs" "x" {}', "aws_vpcs"),
        ('resource "aws_eks_cluster" "x" { name = "x" }', "role_arn"),
        ('resource "aws_subnet" "x" {\n vpc_id = "v"\n tags { a = "b" }\n}', "tags"),
        ('resource "aws_subnet" "x" {\n vpc_id = "v"\n map_public_ip_on_launch = [1]\n}', "bool required"),
        ('output "x" { value = aws_vpc.y.arn }', "aws_vpc"),
        ('resource "helm_release" "x" {\n name = "x"\n chart = "x"\n chrt = "y"\n}', "chrt"),
    ],
)
def test_stand_ins_find_mistakes(spoilt: Checkout, text: str, complaint: str) -> None:
    (spoilt.root / "mistake.tf").write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(TofuRefused, match=complaint):
        spoilt.run("validate", "-no-color")


def test_another_program_than_opentofu_is_refused(spoilt: Checkout) -> None:
    """It reads versions.tf, which OpenTofu passes over for versions.tofu: the constraint there admits nobody.

    OpenTofu heeds such a constraint in files of its own alone, so here it is read as one.
    """
    (spoilt.root / "versions.tf").rename(spoilt.root / "versions.tofu")
    with pytest.raises(TofuRefused, match="not compatible with OpenTofu"):
        spoilt.run("init", "-backend=false", "-no-color", "-input=false")


def test_types_are_those_of_the_catalogue() -> None:
    check_file(CATALOGUE_FILE, write_catalogue())


def test_operators_find_the_names_that_they_know() -> None:
    parsed = tfparse.load_from_path(str(TOFU))
    assert {variable["__tfmeta"]["path"] for variable in parsed["variable"]} >= {
        f"variable.{name}" for name in NAMES_THAT_OPERATORS_SET
    }
    outputs = {output["__tfmeta"]["path"] for output in parsed["output"]}
    of_the_root = {path for path in outputs if path.startswith("output.")}
    assert of_the_root == {f"output.{name}" for name in NAMES_THAT_OPERATORS_READ}


def test_every_node_keeps_its_credentials_from_containers() -> None:
    templates = tfparse.load_from_path(str(TOFU))["aws_launch_template"]
    assert templates
    for template in templates:
        (options,) = [template["metadata_options"]]
        found = options[0] if isinstance(options, list) else options
        assert (found["http_tokens"], found["http_put_response_hop_limit"]) == ("required", 1)
