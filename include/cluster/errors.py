"""Errors of whole calls: unreachable clusters, missing rights, hidden topics."""

from __future__ import annotations

from include.cluster.model import BrokerError
from include.errors import RehomeError


class ClusterError(RehomeError):
    """A call to the cluster failed as a whole.

    :param error: the broker's code and message, where a broker answered.
    """

    def __init__(
        self,
        what: str,
        *,
        error: BrokerError | None = None,
        state_left: str = "Nothing was changed.",
        next_step: str = "",
    ) -> None:
        self.error = error
        super().__init__(
            f"{what}: {error}" if error else what, state_left=state_left, next_step=next_step
        )


class MissingRightError(ClusterError):
    """The principal lacks a right. ``right`` names it as an ACL does: "Cluster Describe"."""

    def __init__(self, call: str, right: str, *, error: BrokerError | None = None) -> None:
        self.call = call
        self.right = right
        super().__init__(
            f"{call} needs the right {right}, which this principal lacks",
            error=error,
            next_step=f"Grant {right} to the principal of the connection (docs/security.md).",
        )


class ClusterUnreachableError(ClusterError):
    """No broker could be reached or authenticated against; ``cause`` says why in one word.

    ``cause`` is one of refused, no_answer, unknown_host, wrong_ca, expired_certificate,
    wrong_host, wrong_password, wrong_protocol, tls, unknown.
    """

    def __init__(self, what: str, *, cause: str, next_step: str = "") -> None:
        self.cause = cause
        super().__init__(what, next_step=next_step)
