"""DICOM files through their windows: pydicom's own test files against pydicom, and what hostile ones cost."""

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pydicom import dcmread
from pydicom.data import get_testdata_file
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.pixels import apply_modality_lut, apply_voi_lut, apply_windowing
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian, JPEGBaseline8Bit

from sphynx.data.dicom import through_window
from sphynx.data.open import open_data
from sphynx.data.picture import read_upright
from sphynx.errors import InputError
from sphynx.service.pictures import pixels_of
from sphynx.space.tally import Shape
from tests.program.programs import program_reading

VALUES = np.arange(6 * 8, dtype=np.uint16).reshape(6, 8) * 80  # up to 3760 of 12 bits


def written(values: Any = VALUES, syntax: Any = ExplicitVRLittleEndian, **tags: Any) -> bytes:
    made = Dataset()
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = syntax
    made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID = "1.2.840.10008.5.1.4.1.1.1"
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID = "1.2.3"
    made.PatientName = "Nobody"
    made.Rows, made.Columns = values.shape[:2]
    made.SamplesPerPixel = 1 if values.ndim == 2 else 3
    made.PhotometricInterpretation = "MONOCHROME2" if values.ndim == 2 else "RGB"
    made.BitsAllocated = 8 * values.itemsize
    made.BitsStored, made.HighBit = (8, 7) if values.itemsize == 1 else (12, 11)
    made.PixelRepresentation = 0
    order = ">" if syntax == ExplicitVRBigEndian else "<"
    made.PixelData = values.astype(values.dtype.newbyteorder(order)).tobytes()
    made["PixelData"].VR = "OB" if values.itemsize == 1 else "OW"
    for name, value in tags.items():
        setattr(made, name, value)
    out = io.BytesIO()
    made.save_as(out, enforce_file_format=True, little_endian=None, implicit_vr=None)
    return out.getvalue()


def read(content: bytes) -> Any:
    return np.asarray(read_upright(io.BytesIO(content), "x.dcm"))


@pytest.mark.parametrize("name", ["CT_small.dcm", "MR_small.dcm", "MR_small_bigendian.dcm", "MR_small_implicit.dcm"])
def test_files_of_scanners_are_shown_as_pydicom_shows_them(name: str) -> None:
    path = str(get_testdata_file(name))
    file = dcmread(path)
    values = apply_modality_lut(file.pixel_array, file).astype(float)
    if "WindowWidth" in file:
        wanted = through_window(values, float(file.WindowCenter), float(file.WindowWidth), "LINEAR")
    else:
        wanted = (values - values.min()) / (values.max() - values.min()) * 255
    np.testing.assert_allclose(read(Path(path).read_bytes()), wanted, atol=0.51)


@pytest.mark.parametrize("function", ["LINEAR", "LINEAR_EXACT", "SIGMOID"])
@pytest.mark.parametrize(("centre", "width"), [(1000, 400), (2048, 4096), (300.5, 77.25)])
def test_windows_are_pydicoms(function: str, centre: float, width: float) -> None:
    file = dcmread(io.BytesIO(written(WindowCenter=centre, WindowWidth=width, VOILUTFunction=function)))
    theirs = apply_windowing(VALUES, file) * (255 / 4095)  # into the range of twelve bits
    ours = read(written(WindowCenter=[centre, 5], WindowWidth=[width, 9], VOILUTFunction=function))
    np.testing.assert_allclose(ours, theirs, atol=0.51)


def test_lookup_tables_are_pydicoms() -> None:
    table = Dataset()
    table.LUTDescriptor = [4096, 0, 12]
    table.LUTData = struct.pack("<4096H", *(int(4095 * (n / 4095) ** 0.5) for n in range(4096)))
    table["LUTData"].VR = "OW"
    content = written(VOILUTSequence=[table])
    theirs = apply_voi_lut(VALUES, dcmread(io.BytesIO(content))) * (255 / 4095)
    np.testing.assert_allclose(read(content), theirs, atol=0.51)


@pytest.mark.parametrize("syntax", [ImplicitVRLittleEndian, ExplicitVRLittleEndian, ExplicitVRBigEndian])
def test_every_plain_syntax_reads_alike(syntax: Any) -> None:
    wanted = np.round(VALUES * (255 / 3760))
    np.testing.assert_array_equal(read(written(syntax=syntax)), wanted)
    np.testing.assert_array_equal(
        read(written(syntax=syntax, PhotometricInterpretation="MONOCHROME1")), np.round(255 - VALUES * (255 / 3760))
    )


def test_signed_values_and_rescales() -> None:
    signed = (VALUES.astype(np.int64) - 1900).astype(np.int16)
    content = written(
        signed, PixelRepresentation=1, RescaleSlope=2, RescaleIntercept=-100, WindowCenter=0, WindowWidth=2000
    )
    wanted = through_window(2 * signed.astype(np.float64) - 100, 0, 2000, "LINEAR")
    np.testing.assert_allclose(read(content), wanted, atol=0.51)


def test_colours_by_pixel_and_by_plane() -> None:
    colours = np.random.default_rng(0).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    np.testing.assert_array_equal(read(written(colours, PlanarConfiguration=0)), colours)
    planes = np.ascontiguousarray(colours.transpose(2, 0, 1)).tobytes()
    np.testing.assert_array_equal(read(written(colours, PlanarConfiguration=1, PixelData=planes)), colours)


def test_a_jpeg_inside() -> None:
    grey = np.tile(np.linspace(0, 255, 64).astype(np.uint8), (48, 1))
    out = io.BytesIO()
    Image.fromarray(grey).save(out, "JPEG", quality=95)
    content = written(grey, JPEGBaseline8Bit, PixelData=encapsulate([out.getvalue()]))
    np.testing.assert_allclose(read(content), grey, atol=4)
    with pytest.raises(InputError, match="its header says 64x40"):
        read(written(grey[:40], JPEGBaseline8Bit, PixelData=encapsulate([out.getvalue()])))


@pytest.mark.parametrize("name", ["image_dfl.dcm", "JPEG2000.dcm", "MR_small_RLE.dcm", "JPEGLSNearLossless_08.dcm"])
def test_compressions_without_a_bound_are_refused(name: str) -> None:
    """A deflated file would unpack to any size."""
    with pytest.raises(InputError, match="compressed in a way that is not read") as no:
        read(Path(str(get_testdata_file(name))).read_bytes())
    assert "uncompressed" in no.value.remedy


@pytest.mark.parametrize(
    ("tags", "what"),
    [
        ({"Rows": 65535, "Columns": 65535}, "4,294,836,225 pixels"),
        ({"Rows": 0}, "0 pixels"),
        ({"Rows": 7}, "cut off"),
        ({"BitsStored": 32, "HighBit": 31}, "not read"),
        ({"PhotometricInterpretation": "PALETTE COLOR"}, "not read"),
    ],
)
def test_headers_that_lie_are_refused(tags: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        read(written(**tags))


def test_a_header_without_an_end_is_refused() -> None:
    # Four MiB are read before the pixels, which come after all that is said.
    with pytest.raises(InputError, match="no pixels in its first 4 MiB"):
        read(written(ImageComments="x" * (5 << 20)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_files_are_refused_or_read_but_never_fail_otherwise(data: st.DataObject) -> None:
    content = bytearray(written(WindowCenter=1000, WindowWidth=400))
    for _ in range(data.draw(st.integers(0, 6))):
        content[data.draw(st.integers(132, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(content[: data.draw(st.integers(140, len(content)))])
    try:
        assert read(cut).dtype == np.uint8
    except InputError as no:
        assert no.where == "x.dcm" and no.remedy


def test_training_and_a_client_read_the_same_pixels(tmp_path: Path) -> None:
    for kind in ("ill", "well"):
        for number in range(6):
            values = np.random.default_rng(number + 9 * (kind == "ill")).integers(0, 4096, (20, 16)).astype(np.uint16)
            (tmp_path / "scans" / kind).mkdir(parents=True, exist_ok=True)
            (tmp_path / "scans" / kind / f"{number}.dcm").write_bytes(
                written(values, WindowCenter=2000, WindowWidth=900)
            )
    data = open_data(str(tmp_path / "scans"), image_size=12)
    seen = {pixels.numpy().tobytes() for images in (data.train, data.test) for pixels in images.images}
    files = sorted((tmp_path / "scans").rglob("*.dcm"))
    assert data.image == (1, 12, 12) and len(files) == 12
    assert seen == {pixels_of(file, program_reading(Shape(1, 12, 12))).tobytes() for file in files}
