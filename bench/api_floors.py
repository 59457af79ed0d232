"""The API's process with floors beside its routes: what the same stack could do at the most.

    python -m bench.api_floors        a worker; settings come from the environment, as for the API

A floor has the same server, framework and middlewares around it, and comes before all other routes, so that
it is found first. `/floor/constant` does nothing at all. The others authenticate and do the work of a route
in one SQL statement, whose answer PostgreSQL itself has put into JSON: no rules, no values, no translation.
"""

from __future__ import annotations

from pathlib import Path

import orjson
import uvloop
from fastapi import APIRouter, FastAPI, Request, Response

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import split_queries
from gpudev.api.service import make_service
from gpudev.app.identity.authentication import hash_key
from gpudev.bootstrap.application import make_application
from gpudev.bootstrap.foundation import begin, open_stores
from gpudev.bootstrap.http_server import serve
from gpudev.bootstrap.listeners import Listeners, listening
from gpudev.settings import Settings

_SQL = split_queries(Path(__file__).with_name("floors.sql").read_text(encoding="utf-8"))


class Floors:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add_to(self, service: FastAPI) -> None:
        floors = APIRouter(prefix="/floor")
        floors.add_api_route("/constant", self.constant)
        floors.add_api_route("/jobs", self.list_jobs)
        floors.add_api_route("/jobs/submit", self.submit, methods=["POST"])
        floors.add_api_route("/jobs/{job_id}", self.get_job)
        floors.add_api_route("/gpu/availability", self.availability)
        service.router.routes[:0] = floors.routes

    async def constant(self) -> Response:
        return _json(b'{"status":"ok"}')

    async def get_job(self, request: Request) -> Response:
        return await self._answer("get", request, request.path_params["job_id"])

    async def list_jobs(self, request: Request) -> Response:
        return await self._answer("list", request)

    async def availability(self, request: Request) -> Response:
        return await self._answer("availability", request)

    async def submit(self, request: Request) -> Response:
        asked = orjson.loads(await request.body())
        names = ("gpu_type", "gpu_count", "duration_hours", "ssh_public_keys")
        return await self._answer("submit", request, *(asked[name] for name in names))

    async def _answer(self, query: str, request: Request, *values: object) -> Response:
        key = request.headers["authorization"].removeprefix("Bearer ")
        return _json(await self._database.fetch_value(_SQL[query], hash_key(key), *values))


def _json(body: bytes | str) -> Response:
    return Response(body, media_type="application/json")


async def _serve(settings: Settings, listeners: Listeners) -> None:
    async with open_stores(settings) as stores:
        service = make_service(make_application(settings, stores))
        Floors(stores.database).add_to(service)
        await serve(service, settings, listeners)


def main() -> None:
    settings = Settings()
    begin(settings)
    with listening(settings) as listeners:
        uvloop.run(_serve(settings, listeners))


if __name__ == "__main__":
    main()
