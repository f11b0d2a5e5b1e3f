"""The codes that Rehome decides by, against librdkafka's table of them."""

from __future__ import annotations

import pytest

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import broker_error
from rehome.domain.kafka import BrokerError


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_a_code_has_the_name_that_librdkafka_gives_it(code: ErrorCode) -> None:
    assert broker_error(code) == code.error() == BrokerError(int(code), code.name)
