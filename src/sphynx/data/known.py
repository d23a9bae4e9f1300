"""Opens the data that a run or a compiled program was made with, unless others are named."""

from __future__ import annotations

from sphynx.data.images import Data
from sphynx.data.open import open_any, open_data
from sphynx.data.source import DataSource
from sphynx.data.streamed import StreamedData
from sphynx.errors import InputError


def open_known(
    given: str,
    image_size: int | None,
    stream: bool | None,
    known: DataSource | None,
    *,
    where: str,
    parameter: str = "data",
    skip_bad: bool = False,
) -> Data | StreamedData:
    """The data that are `given` by name or path, else the `known` ones, which the run or program names.

    Size and streaming are the recorded ones for both, unless they are given: data that were moved are still to be made
    into the images that the network takes. `skip_bad` leaves out files that cannot be read, as does one recorded.
    `parameter` is what errors call the given data.
    """
    naming = f"`{parameter}=DATA`"
    if not given and known is None:
        raise InputError("it does not name the data it was made with", where=where, remedy=f"Name them: {naming}.")
    source = known or DataSource(given)
    streamed = source.stream if stream is None else stream
    try:
        return open_any(
            given or source.spec,
            image_size=image_size or source.image_size,
            stream=streamed,
            skip_bad=skip_bad or source.skip_bad,
            groups=None if given else source.groups,
        )
    except InputError as error:
        if not given:
            raise InputError(
                f"the data it was made with cannot be opened: {error.what}",
                where=error.where or where,
                remedy=f"Name them: {naming}. {error.remedy}",
            ) from None
        if streamed and stream is None:
            remedy = f"{error.remedy} It was made with streamed images; to open others: `stream=False`."
            raise InputError(error.what, where=error.where, remedy=remedy) from None
        if image_size is None and source.image_size is not None:
            _refuse_fixed_size(given, source.image_size)
        raise


def _refuse_fixed_size(data: str, recorded: int) -> None:
    """Refuse data that cannot be resized to the recorded size: nobody gave that size, so nobody can leave it out."""
    try:
        height, width = open_data(data).train.shape[1:]
    except InputError:
        return  # they cannot be opened at all, which is the error to tell
    raise InputError(
        f"its images are {height}x{width}, the network takes those of {recorded}x{recorded}",
        where=data,
        remedy=f"Name a folder of images, which are resized, or data of {recorded}x{recorded}.",
    ) from None
