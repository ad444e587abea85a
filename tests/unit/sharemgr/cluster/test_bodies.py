"""What is kept of requests' bodies is bounded over all of them, and who is being answered is never refused."""

from sharemgr.cluster.server.bodies import Bodies, Body


class Requests:
    def __init__(self, bytes_max: int) -> None:
        self.bodies = Bodies(bytes_max)
        self.refused: list[str] = []

    def begin(self, name: str) -> Body:
        return self.bodies.begin(lambda: self.refused.append(name))


def test_who_has_been_sending_for_longest_is_refused_where_there_is_no_room() -> None:
    requests = Requests(100)
    first, second, third = (requests.begin(name) for name in ("first", "second", "third"))
    first.take_in(40)
    second.take_in(60)
    assert requests.refused == []
    third.take_in(30)
    assert requests.refused == ["first"]
    assert first.is_refused
    assert requests.bodies.bytes == 90
    third.take_in(80)
    assert requests.refused == ["first", "second", "third"]
    assert requests.bodies.bytes == 0


def test_what_is_whole_counts_until_it_is_answered_and_is_not_refused() -> None:
    requests = Requests(100)
    answered, new = requests.begin("answered"), requests.begin("new")
    answered.take_in(90)
    answered.is_whole()
    new.take_in(20)
    assert requests.refused == ["new"]
    assert requests.bodies.bytes == 90
    for _ in range(2):
        answered.drop()
    assert requests.bodies.bytes == 0
    requests.begin("next").take_in(100)
    assert requests.refused == ["new"]
