"""Whatever an id holds, it names one folder, which is its own, and comes back as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.request.param_types import checked_plan_id
from rehome.places.path_parts import EMPTY, LONGEST_PART, PathPartError, id_of, ids_of, path_part
from rehome.warehouse import Warehouse, cluster_of, read_snapshot, taken_at_of
from tests.quality.snapshots import Rows

HOSTILE = st.text(st.sampled_from("./\\~%2EeFf*?[]:\0\n\u2028é\udc80 Aa-_")) | st.text()
SHORT = HOSTILE.filter(lambda text: len(text.encode(errors="surrogatepass")) <= LONGEST_PART // 3)


@pytest.mark.slow
@given(SHORT)
def test_no_id_is_more_than_one_part_of_a_path(text: str) -> None:
    part = path_part(text)
    assert part
    assert not part.startswith(".")
    assert ".." not in part
    assert not set(part) & set("/\\%*?[]:\0\n ")
    assert part.isascii()
    root = Path("/warehouse/snapshots")
    assert (root / part).resolve().parent == root
    assert checked_plan_id(f"20300101T000000Z-{part}"[:200])


@pytest.mark.slow
@given(SHORT, SHORT)
def test_ids_come_back_and_no_two_share_a_folder(one: str, other: str) -> None:
    assert id_of(path_part(one)) == one
    assert (path_part(one) == path_part(other)) == (one == other)
    assert ids_of([path_part(one), path_part(other)]) == sorted([one, other])


@given(HOSTILE)
def test_a_folder_that_was_not_made_here_is_none_of_ours(part: str) -> None:
    for found in ids_of([part]):
        assert path_part(found) == part


@pytest.mark.parametrize("text", ["MkU3OEVBNTcwNTJENDM2Qg", "lkc-abc123", "a_b-c.d", "A"])
def test_ordinary_ids_stay_as_they_are(text: str) -> None:
    assert path_part(text) == text


@pytest.mark.parametrize(
    ("text", "part"),
    [("", EMPTY), ("../x", "~2E~2E~2Fx"), (".a", "~2Ea"), ("~2F", "~7E2F"), ("a b", "a~20b")],
)
def test_what_other_ids_become(text: str, part: str) -> None:
    assert path_part(text) == part


def test_an_id_that_no_folder_can_be_named_by_is_refused() -> None:
    assert path_part("a" * LONGEST_PART)
    with pytest.raises(PathPartError, match="201 characters"):
        path_part("a" * (LONGEST_PART + 1))


@pytest.mark.parametrize("cluster_id", ["../../outside", "/etc", "..", "", "a/b", "*", "ü~%2F"])
def test_a_cluster_of_any_id_is_kept_in_its_own_folders(tmp_path: Path, cluster_id: str) -> None:
    warehouse = Warehouse((tmp_path / "deep" / "down" / "warehouse").as_uri())
    taken = replace(Rows().snapshot(), cluster_id=cluster_id)
    uri = warehouse.write_snapshot(taken)
    warehouse.rollups(cluster_id).write("2030-01-01", taken.brokers)
    written = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert all(path.is_relative_to(tmp_path / "deep/down/warehouse") for path in written)
    assert {len(path.relative_to(tmp_path).parts) for path in written} == {7}
    assert warehouse.clusters() == [cluster_id]
    assert warehouse.latest_snapshot(cluster_id) == uri == warehouse.snapshot_uri(taken.name)
    assert (cluster_of(uri), taken_at_of(uri)) == (cluster_id, taken.taken_at)
    assert read_snapshot(uri).cluster_id == cluster_id
    assert warehouse.rollups(cluster_id).days() == ["2030-01-01"]
    warehouse.remove_snapshot(uri)
    assert warehouse.clusters() == [cluster_id], "an empty folder"
