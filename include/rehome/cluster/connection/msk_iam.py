"""Tokens of Amazon MSK's access control by IAM: a request that is signed, and never sent."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rehome.cluster.connection.tokens import Token
from rehome.cluster.interface.errors import ClusterUnreachableError, Unreachable

MECHANISM = "AWS_MSK_IAM"
_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")

_GIVE_CREDENTIALS = "Give the machine a role, or name credentials as AWS's own tools read them."


def region_of(host: str) -> str | None:
    """The region that a broker's host name has, where it is one of Amazon's."""
    found = _HOST.search(host.lower())
    return found[1] if found else None


@dataclass(frozen=True, slots=True)
class MskIam:
    """Signs with the credentials that this machine has: its role, environment, or shared files.

    :param role: ARN of a role to take on first; "" = none.
    """

    region: str
    role: str = ""

    def fetch(self, timeout_s: float) -> Token:
        """Sign a token; AWS lets it last for 15 minutes.

        :param timeout_s: is not used: the signer has limits of its own, and sends nothing but for
            a role.
        :raises ClusterUnreachableError: the signer or credentials are missing.
        """
        try:
            from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
            from botocore.exceptions import BotoCoreError, ClientError
            from botocore.session import Session
        except ImportError as error:
            raise _no_token(
                "the package aws-msk-iam-sasl-signer-python is missing",
                "Install rehome[msk] on every machine of Airflow.",
            ) from error
        try:
            if Session().get_credentials() is None:  # the signer would say nothing of use
                raise _no_token("this machine has no AWS credentials", _GIVE_CREDENTIALS)
            if self.role:
                value, ends_ms = MSKAuthTokenProvider.generate_auth_token_from_role_arn(
                    self.region, self.role, "rehome"
                )
            else:
                value, ends_ms = MSKAuthTokenProvider.generate_auth_token(self.region)
        except (BotoCoreError, ClientError, ValueError) as error:
            raise _no_token(str(error), _GIVE_CREDENTIALS) from error
        return Token(str(value), ends_ms / 1000)


def _no_token(what: str, next_step: str) -> ClusterUnreachableError:
    return ClusterUnreachableError(
        f"There is no token for Amazon MSK: {what}",
        cause=Unreachable.NO_CREDENTIALS,
        next_step=next_step,
    )
