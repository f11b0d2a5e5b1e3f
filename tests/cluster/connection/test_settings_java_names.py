"""Settings of Java's clients: refused with what to do, and that works."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from local.kafka.certificates import CertificateAuthority
from rehome.cluster.connection.settings import INSTEAD, Connection
from rehome.errors import InvalidRequestError
from tests.session.needs import Need, needs


@pytest.mark.parametrize("name", INSTEAD)
def test_each_is_refused_with_what_to_do(name: str) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        Connection.from_settings({"bootstrap.servers": "b1", name: "s3cret-word"})
    assert f"setting {name} is not supported: {INSTEAD[name]}." in str(raised.value)
    assert "s3cret-word" not in str(raised.value)


@pytest.fixture
@needs(Need.BROKERS)  # they need Java as well, which keytool comes with
def keytool() -> str:
    found = shutil.which("keytool")
    assert found
    return found


def commands(name: str) -> list[str]:
    return re.findall(r"`([^`]+)`", INSTEAD[name])


def test_keystores_are_converted_by_the_commands_that_are_named(
    keytool: str, tmp_path: Path
) -> None:
    authority = CertificateAuthority()
    ca = authority.write(tmp_path / "the-ca.pem")
    own = authority.issue(tmp_path / "own.pem", "alice")
    convert, from_jks = commands("ssl.keystore.location")
    (list_truststore,) = commands("ssl.truststore.location")
    made = [
        "openssl pkcs12 -export -in own.pem -out made.p12 -name alice -passout pass:changeit",
        f"{keytool} -importkeystore -srckeystore made.p12 -destkeystore client.jks "
        "-deststoretype JKS -srcstorepass changeit -deststorepass changeit",
        f"{keytool} -importcert -noprompt -alias ca -file {ca} -keystore truststore.jks "
        "-storepass changeit",
        f"{from_jks} -srcstorepass changeit -deststorepass changeit",
        f"{convert} -passin pass:changeit",
        list_truststore.replace(" > ", " -storepass changeit > "),
    ]
    for command in made:
        subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True)
    settings = {
        "bootstrap.servers": "b1",
        "security.protocol": "SSL",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.certificate.location": str(tmp_path / "client.pem"),
        "ssl.key.location": str(tmp_path / "client.pem"),
    }
    trusted = Connection.from_settings(settings).tls.context().get_ca_certs(binary_form=True)
    assert trusted == [ssl.PEM_cert_to_DER_cert(ca.read_text())]
    assert own.exists()
