"""One Airflow as a person uses it: its public API, and the page of Rehome in it.

The same rights hold as in the browser: Airflow knows the person by a token, and asks its auth
manager whether they may. No cookie is ever kept or sent.
"""

from __future__ import annotations

import http.cookiejar
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from rehome.cli.output import CommandError, ExitCode

ANSWER_TIMEOUT_S = 60.0
TRUSTED_S = 60.0
"""After a new token, too, has got 404, it is so long taken for true: commands wait for what is not
there yet, and each login counts at an auth manager.
"""
PUBLIC_API = "/api/v2"
PAGE = "/rehome"
HEAD_OF_PAGE = "rehome"
"""The key by which an error is known to be of Rehome's page, and not of what stands before it."""
LOG_IN = "Give a token in REHOME_TOKEN or --token-file, or log in with --user."
ANOTHER_TOKEN = (
    "get a new one from Airflow's /auth/token, and set REHOME_TOKEN to it or write it to the "
    "file of --token-file, which is read again when a token has ended; or log in with --user: "
    "then rehome logs in again by itself"
)


@dataclass(frozen=True)
class SignIn:
    """Who asks.

    :param token: that Airflow has given them; "" = they log in.
    :param user: "" = no login either: Airflow may let everybody in.
    :param token_file: where the token was read, and where another may be found later.
    """

    token: str = ""
    user: str = ""
    password: str = ""
    token_file: Path | None = None


def read_token(file: Path) -> str:
    """The token in a file.

    :raises CommandError: the file cannot be read.
    """
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(ExitCode.USAGE, f"The token cannot be read: {error}.") from error
    return token_in(text, str(file))


def token_in(text: str, where: str) -> str:
    """A token, without the white space around it.

    :param where: names its place: an error quotes nothing of the text.
    :raises CommandError: the text is more than a token, or none.
    """
    token = text.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CommandError(
            ExitCode.USAGE,
            f"What {where} holds is no token: a token is one word of ASCII letters, digits "
            "and signs.",
            "Put there what Airflow's /auth/token gives as access_token, and nothing else.",
        )
    return token


class AirflowClient:
    """Asks one Airflow as one person. Use it as a context manager.

    :param url: where Airflow's UI is, with its path prefix where it has one.
    :raises CommandError: of every call: it did not answer, or has refused.
    """

    def __init__(self, url: str, who: SignIn, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self.url = url.rstrip("/")
        self._who = who
        self._token = who.token
        self._trusted_until = 0.0
        no_domain = http.cookiejar.DefaultCookiePolicy(allowed_domains=[])
        try:
            self._client = httpx.Client(
                base_url=self.url, timeout=timeout_s, cookies=http.cookiejar.CookieJar(no_domain)
            )
            host = self._client.base_url.raw_host.decode("ascii")
            host.encode("idna")  # as it is before it is looked up
        except (httpx.InvalidURL, UnicodeError) as error:
            raise _no_url(url) from error

    def __enter__(self) -> AirflowClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def page(self, path: str, **query: Any) -> Any:
        """What a page of Rehome shows, as data: ``page("/plans/ID")``."""
        return self._json(self._ask("GET", f"{PAGE}{path}", params=query))

    def press(self, path: str, form: Mapping[str, str]) -> Any:
        """What a button of the page does."""
        return self._json(self._ask("POST", f"{PAGE}{path}", data=dict(form)))

    def file(self, path: str) -> str:
        """A file that the page serves, as text."""
        return self._ask("GET", f"{PAGE}{path}").text

    def api(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """A request to Airflow's public API: ``api("GET", "/dags/ID")``."""
        return self._json(self._ask(method, f"{PUBLIC_API}{path}", json=body))

    def _ask(self, method: str, path: str, **sent: Any) -> httpx.Response:
        first = not self._token
        if first:
            self._log_in()
        answer = self._send(method, path, **sent)
        if not first and self._may_be_old(answer.status_code) and self._renew_token():
            answer = self._send(method, path, **sent)
            if answer.status_code == httpx.codes.NOT_FOUND:
                self._trusted_until = time.monotonic() + TRUSTED_S
        if answer.is_redirect:
            raise self._strange(answer)
        if answer.is_error:
            raise self._refusal(answer)
        return answer

    def _send(self, method: str, path: str, **sent: Any) -> httpx.Response:
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            return self._client.request(method, path, headers=headers, **sent)
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise _no_url(self.url) from error
        except httpx.TimeoutException as error:
            raise CommandError(
                ExitCode.AWAY,
                f"Airflow at {self.url} did not answer in time ({type(error).__name__}).",
                "Whether Airflow has done what was asked is not known: look at the plan and its "
                "runs before you ask again.",
            ) from error
        except httpx.TransportError as error:
            raise CommandError(
                ExitCode.AWAY,
                f"{self.url} cannot be reached: {error or type(error).__name__}.",
                "Check --airflow (or REHOME_AIRFLOW_URL), and that Airflow's API server runs. A "
                "CA of your own goes into SSL_CERT_FILE.",
            ) from error

    def _may_be_old(self, status: int) -> bool:
        """Whether an answer may be one to a token that has ended."""
        if status == httpx.codes.NOT_FOUND:
            return time.monotonic() >= self._trusted_until
        return status in _OLD_TOKEN

    def _renew_token(self) -> bool:
        """Get another token in the place of one that may have ended; whether there is one."""
        if self._who.token_file is not None:
            try:
                token = read_token(self._who.token_file)
            except CommandError:
                return False  # what was answered to the one that there was says more
            if token in ("", self._token):
                return False
            self._token = token
        elif self._who.token:
            return False
        else:
            self._log_in()
        return True

    def _log_in(self) -> None:
        self._token = ""
        who = {"username": self._who.user, "password": self._who.password}
        # Without a name: an Airflow of one person's own lets everybody in.
        method, body = ("POST", who) if self._who.user else ("GET", None)
        answer = self._send(method, "/auth/token", json=body)
        if not answer.is_success and not self._who.user:
            raise CommandError(
                ExitCode.NOT_ALLOWED, f"{self.url} does not know who you are.", LOG_IN
            )
        if answer.status_code in (httpx.codes.BAD_REQUEST, *_UNKNOWN):
            raise CommandError(
                ExitCode.NOT_ALLOWED,
                f"{self.url} does not let {self._who.user} in: {answer.status_code} "
                f"{_detail(answer)}.",
                "Check --user and the password.",
            )
        token = _read(answer)
        if not answer.is_success or not isinstance(token, dict) or "access_token" not in token:
            raise CommandError(
                ExitCode.AWAY,
                f"{self.url}/auth/token gives no token: {answer.status_code}.",
                "Check the address in --airflow. If Airflow's auth manager gives no token for a "
                "password, give a token in REHOME_TOKEN or --token-file.",
            )
        self._token = str(token["access_token"])

    def _json(self, answer: httpx.Response) -> Any:
        content = _read(answer, object_hook=partial(_Answer, partial(self._strange, answer)))
        if content is None:
            raise self._strange(answer)
        return content

    def _refusal(self, answer: httpx.Response) -> CommandError:
        status, detail = answer.status_code, _detail(answer)
        said = f"{status} {detail}".rstrip(".") + "."
        if status == httpx.codes.UNAUTHORIZED and self._who.token:
            return CommandError(
                ExitCode.NOT_ALLOWED,
                f"{self.url} does not accept the token: {said}",
                f"If it has ended, {ANOTHER_TOKEN}.",
            )
        if status == httpx.codes.UNAUTHORIZED:
            return CommandError(
                ExitCode.NOT_ALLOWED, f"{self.url} does not know who you are: {said}", LOG_IN
            )
        if status == httpx.codes.FORBIDDEN:
            ended = f"If the token has ended, {ANOTHER_TOKEN}. Otherwise ask"
            return CommandError(
                ExitCode.NOT_ALLOWED,
                said,
                f"{ended if self._who.token else 'Ask'} an administrator of this Airflow for the "
                "right.",
            )
        if status == httpx.codes.NOT_FOUND:
            if str(answer.request.url.path).find(f"{PAGE}/") >= 0 and not _of_page(answer):
                return self._strange(answer)
            ended = f"If it should be there, the token may have ended: {ANOTHER_TOKEN}."
            return CommandError(ExitCode.NOT_THERE, said, ended if self._who.token else "")
        if status >= httpx.codes.INTERNAL_SERVER_ERROR:
            return CommandError(
                ExitCode.AWAY, f"{self.url} has failed: {said}", "See the log of its API server."
            )
        return CommandError(ExitCode.REFUSED, said)

    def _strange(self, answer: httpx.Response, lacks: str = "") -> CommandError:
        """:param lacks: a field that the answer should have."""
        path = str(answer.request.url.path)
        without = f", without {lacks}" if lacks else ""
        return CommandError(
            ExitCode.AWAY,
            f"What answers at {self.url} ({answer.status_code} of {path}{without}) is no Airflow "
            "that has this Rehome.",
            "Check --airflow: it is the address of Airflow's UI, with its path prefix. Or Rehome "
            "there is missing, or older than this command.",
        )


class _Answer(dict[str, Any]):
    """An object of an answer. To ask for a field that it lacks is an error of who has answered:
    another version, say.
    """

    def __init__(self, lacks: Callable[[str], CommandError], content: Mapping[str, Any]) -> None:
        super().__init__(content)
        self._lacks = lacks

    def __missing__(self, name: str) -> Any:
        raise self._lacks(name)


_OLD_TOKEN = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
"""What Airflow may say of a token that has ended, and 404: its own tokens are then unknown; with a
token whose rights lie elsewhere, the user has no right any more, or a plan is not for them.
"""
_UNKNOWN = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.UNPROCESSABLE_ENTITY)


def _no_url(url: str) -> CommandError:
    return CommandError(
        ExitCode.USAGE, f"{url!r} is no address.", "Write --airflow http://airflow.example:8080."
    )


def _read(answer: httpx.Response, **how: Any) -> Any:
    try:
        return answer.json(**how)
    except ValueError:
        return None


def _of_page(answer: httpx.Response) -> bool:
    content = _read(answer)
    return isinstance(content, dict) and HEAD_OF_PAGE in content


def _detail(answer: httpx.Response) -> str:
    """What a server says is wrong, on one line."""
    content = _read(answer)
    detail = content.get("detail", content) if isinstance(content, dict) else content
    if isinstance(detail, list):  # what FastAPI says of a body
        detail = "; ".join(
            f"{'.'.join(map(str, each.get('loc', ())))}: {each.get('msg')}"
            if isinstance(each, dict)
            else str(each)
            for each in detail
        )
    return " ".join(str(detail if detail is not None else answer.reason_phrase).split())
