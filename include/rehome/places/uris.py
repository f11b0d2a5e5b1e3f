"""Which URIs are read and written: by their scheme, and by lying below another."""

from __future__ import annotations

import os
import re

from rehome.errors import RehomeError

SCHEMES = frozenset({"file", "s3", "s3a", "gs", "abfss", "hdfs", "memory"})
OTHER_SCHEMES = "REHOME_OTHER_URI_SCHEMES"
"""The environment's name of the setting ``other_uri_schemes``. Every process reads it: also jobs,
which have no other settings."""
_SAME = {"s3a": "s3"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


class UriNotAllowedError(RehomeError):
    """A URI that Rehome neither reads nor writes."""


def schemes_in(text: str) -> frozenset[str]:
    """Schemes that are named in text, parted by commas or white space, in lower case.

    :raises ValueError: one of them cannot be one.
    """
    schemes = frozenset(re.split(r"[,\s]+", text.strip().lower())) - {""}
    if wrong := sorted(each for each in schemes if not _SCHEME.fullmatch(each)):
        raise ValueError(f"is no list of schemes, such as az, oss: {', '.join(wrong)}")
    return schemes


def refuse_other_scheme(uri: str) -> None:
    """See that a URI is of a kind that may hold the warehouse: nothing is fetched by HTTP because a
    parameter, an XCom or a file says so.

    :raises UriNotAllowedError: it is of another kind, or of several.
    """
    scheme = scheme_of(uri)
    allowed = SCHEMES | schemes_in(os.environ.get(OTHER_SCHEMES, ""))
    if scheme in allowed and "::" not in uri:
        return
    raise UriNotAllowedError(
        f"{uri[:200]} is neither read nor written: the schemes of URIs are "
        f"{', '.join(sorted(allowed))}, one at a time",
        next_step="Keep the warehouse in one of these, or name another scheme in "
        f"{OTHER_SCHEMES}, in the environment of every Airflow component.",
    )


def is_below(uri: str, root: str) -> bool:
    """Whether a URI lies below another: by its text, which is what both were made of."""
    parts, above = _parts_of(uri), _parts_of(root)
    return (
        len(parts) > len(above)
        and parts[: len(above)] == above
        and not {"", ".", ".."} & set(parts[len(above) :])
    )


def scheme_of(uri: str) -> str:
    """A URI's scheme in lower case; file for a path."""
    scheme, separator, _ = uri.partition("://")
    if not separator:
        return "file"
    return scheme.lower()


def _parts_of(uri: str) -> list[str]:
    """Scheme, host and path, part by part."""
    scheme = scheme_of(uri)
    rest = uri.partition("://")[2] if "://" in uri else os.path.abspath(uri)
    return [_SAME.get(scheme, scheme), *rest.rstrip("/").split("/")]
