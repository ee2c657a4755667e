import pytest

from crowds import crowd, gather, reversing_crowd
from isplitlbi.abnormal import find_abnormal
from isplitlbi.model.links import Logistic
from isplitlbi.solvers.likelihood import fit_consensus


@pytest.fixture(scope="session")
def voters():
    return crowd()


@pytest.fixture(scope="session")
def votes(voters):
    return gather(voters)


@pytest.fixture(scope="session")
def start(votes):
    return fit_consensus(votes, Logistic())


@pytest.fixture(scope="session")
def found(votes, start):
    return find_abnormal(votes, Logistic(), start)


@pytest.fixture(scope="session")
def place(votes):
    return {user: place for place, user in enumerate(votes.users)}


@pytest.fixture(scope="session")
def reversing():
    return reversing_crowd()
