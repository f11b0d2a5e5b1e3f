"""The page's routes. They read the ledger and the warehouse; what changes something runs a DAG."""

from __future__ import annotations

from fastapi import APIRouter

from rehome.ui.routes import (
    actions,
    cluster_pages,
    downloads,
    explain,
    lists,
    live,
    plan,
    planning,
    rebinding,
)

router = APIRouter()
for part in (
    lists,
    cluster_pages,
    plan,
    explain,
    live,
    actions,
    planning,
    rebinding,
    downloads,
):
    router.include_router(part.router)
