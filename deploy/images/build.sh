#!/usr/bin/env bash
# Build one image, and push it if asked to, with a list of what is in it beside it.
#
# From the environment: IMAGE (a folder beside this script), REPOSITORY, TAG, and PUSH=true with REGION for ECR.
set -euo pipefail
cd "$(dirname "$0")/../.."

name="$REPOSITORY:$TAG"
if [ "${PUSH:-false}" = true ]; then
    aws ecr get-login-password --region "$REGION" |
        docker login --username AWS --password-stdin "${REPOSITORY%%/*}"
fi
output=(--load)
if [ "${PUSH:-false}" = true ]; then
    output=(--push)
fi
# The list of contents (SBOM) and how it was built travel with the image.
docker buildx build --platform linux/amd64 --sbom=true --provenance=true \
    --file "deploy/images/$IMAGE/Dockerfile" --tag "$name" "${output[@]}" .
