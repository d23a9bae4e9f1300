"""Reading a JSON file that Sphynx wrote or a user did: the failures that a user meets, named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sphynx.errors import InputError

_REMEDY = "Fix the file there, or make it again."


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError("there is no such file", where=str(path), remedy="Check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"it cannot be read: {error}", where=str(path), remedy="Check the path.") from None
    except json.JSONDecodeError as error:
        raise InputError(f"it is not valid JSON: {error}", where=str(path), remedy=_REMEDY) from None
    except (ValueError, RecursionError):  # Python reads integers of up to 4,300 digits
        raise InputError("its values are nested too deeply or too long", where=str(path), remedy=_REMEDY) from None
