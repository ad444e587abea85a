"""What is a flaw of a random program, of reports that were made up."""

from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case, Client
from tests.kit.virtual.cases.made_report import made_report
from tests.kit.virtual.cases.oracles import flaws
from tests.kit.virtual.cases.report import DiedError, Report

CASE = Case(clients=tuple(Client(program=step_programs.burn(1000), percent=percent) for percent in (70, 30)))


def test_who_has_its_percent_of_what_it_uses_bare_has_no_flaw() -> None:
    assert not flaws(CASE, lambda case: made_report(case, 20 if case.hooked else 25))


def test_a_program_that_ends_without_an_answer_bare_is_a_flaw_of_its_case_and_no_end_of_the_others() -> None:
    def run(case: Case) -> Report:
        if not case.hooked:
            raise DiedError("exit status 70")
        return made_report(case, 20, told_percent=5)

    found = [(flaw.kind, flaw.what) for flaw in flaws(CASE, run)]
    assert [kind for kind, _ in found] == ["less GPU time", "died", "less GPU time", "died"]
    assert "c0, bare: exit status 70" in [what for _, what in found]
