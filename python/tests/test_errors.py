import json
import pickle

import pytest

import heliostat
from heliostat._errors import problem_error

CLASSES = {"invalid_argument": heliostat.InvalidArgument, "unauthenticated": heliostat.Unauthenticated, "not_found": heliostat.NotFound,
           "permission_denied": heliostat.PermissionDenied, "already_exists": heliostat.AlreadyExists, "conflict": heliostat.Conflict,
           "precondition_failed": heliostat.PreconditionFailed, "resource_exhausted": heliostat.ResourceExhausted,
           "unavailable": heliostat.Unavailable, "deadline_exceeded": heliostat.DeadlineExceeded, "internal": heliostat.HeliostatError,
           "storage_full": heliostat.HeliostatError, "of_tomorrow": heliostat.HeliostatError}


@pytest.mark.parametrize("code", CLASSES)
def test_a_problem_document_becomes_the_exception_of_its_code(code):
    body = json.dumps({"status": 418, "code": code, "detail": "no tea", "path": "$.pot", "args": {"job": "j-1", "count": 3}}).encode()
    error = problem_error(418, body)
    assert type(error) is CLASSES[code]
    assert (error.code, error.detail, error.path, error.arguments, error.status) == (code, "no tea", "$.pot", {"job": "j-1", "count": "3"}, 418)
    assert str(error) == f"{code} at $.pot: no tea"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and vars(again) == vars(error) and str(again) == str(error)


@pytest.mark.parametrize("body", [b"", b"<html>Bad Gateway</html>", b"[]", b'{"error": "x"}', b"\xff"])
def test_another_answer_is_internal_with_its_first_words(body):
    error = problem_error(502, body)
    assert error.code == "internal" and "502" in str(error) and error.status == 502
    assert (body[:6].decode("utf-8", "replace") or "nothing") in str(error)


def test_what_python_has_a_word_for_is_that_too():
    with pytest.raises(TimeoutError):
        raise heliostat.DeadlineExceeded("deadline_exceeded", "late")
    with pytest.raises(ConnectionError):
        raise heliostat.Unavailable("unavailable", "away")
