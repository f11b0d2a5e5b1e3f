"""Which ledger this is: plans name the one that they are recorded in."""

from __future__ import annotations

from functools import cached_property

from sqlalchemy import select

from rehome.ledger.base.database import Database
from rehome.ledger.base.models import IDENTITY

_ID = select(IDENTITY.c.ledger_id)


class IdentityStore(Database):
    """The ledger's own id: given once, when its tables are made."""

    @cached_property
    def ledger_id(self) -> str:
        """32 hexadecimal digits."""
        with self.reading() as connection:
            return str(connection.execute(_ID).scalar_one())
