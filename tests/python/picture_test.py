"""stipple.picture: images that show themselves, and figures and charts of the same options as in C++."""
import gc

import numpy as np
import pytest
import stipple
from conftest import address
from picture_calls import CALLS, CLOUD, MESH
from stipple import io, picture


@pytest.mark.parametrize("name", sorted(CALLS))
def test_every_call_returns(name):
    assert CALLS[name]() is not None


def test_an_image_shows_itself(tmp_path):
    image = picture.draw_mesh(MESH, panel_width=120, panel_height=90)
    assert (image.width, image.height, image.channels) == (120, 90, 3)
    png = image._repr_png_()
    assert png.startswith(b"\x89PNG") and png == image.png()
    image.save(tmp_path / "a.png")
    pixels = image.numpy()
    np.testing.assert_array_equal(io.load_image(tmp_path / "a.png").numpy(), pixels)
    np.testing.assert_array_equal(np.asarray(image), pixels)
    image.save(tmp_path / "a.JPG", quality=70)
    assert (tmp_path / "a.JPG").read_bytes().startswith(b"\xff\xd8")
    with pytest.raises(stipple.OutputError):
        image.save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="wanted is .png, .jpg or .jpeg"):
        image.save(tmp_path / "a.gif")


def test_pixels_are_a_view_that_keeps_the_image():
    image = picture.Image(np.full((5, 7, 3), 9, np.uint8))
    pixels = image.numpy()
    assert address(pixels) == address(image.numpy()) and pixels.shape == (5, 7, 3)
    del image
    gc.collect()
    assert (pixels == 9).all()
    with pytest.raises(ValueError, match="2 channels"):
        picture.Image(np.zeros((5, 7, 2), np.uint8))
    with pytest.raises(TypeError, match="pixels: an array of float32"):
        picture.Image(np.zeros((5, 7, 3), np.float32))


def test_options_are_seen():
    plain = picture.draw_cloud(CLOUD, panel_width=120, panel_height=120).numpy()
    for option in ({"dark": True}, {"color_by": "label"}, {"view": "top"}, {"azimuth": 80}, {"point_radius": 4},
                   {"background": (1, 2, 3)}, {"axes": True}, {"inset": {"x": 0.3, "color": "#00ff00"}}, {"up": "y"}):
        other = picture.draw_cloud(CLOUD, panel_width=120, panel_height=120, **option).numpy()
        assert other.shape != plain.shape or (other != plain).any(), option
    figure = picture.draw_figure([{"cloud": CLOUD, "mesh": MESH}, CLOUD], panel_width=100, panel_height=80)
    assert len(figure.panels) == len(figure.corners) == 2 and figure.panels[1].points > 0


def test_wrong_options_are_refused_by_name():
    with pytest.raises(TypeError, match='style: no "colour_by"; there are caption, color_by'):
        picture.draw_cloud(CLOUD, colour_by="z")
    with pytest.raises(TypeError, match="panel_width: str does not fit"):
        picture.draw_cloud(CLOUD, panel_width="wide")
    with pytest.raises(stipple.ArgumentError, match='up: "w"'):
        picture.draw_cloud(CLOUD, up="w")
    with pytest.raises(stipple.ArgumentError, match="no_such"):
        picture.draw_cloud(CLOUD, color_by="no_such")
    with pytest.raises(TypeError, match="cloud: numpy.ndarray; wanted is a stipple.io.PointCloud"):
        picture.draw_cloud(CLOUD.positions)
    with pytest.raises(stipple.ArgumentError):
        picture.draw_chart([])
    with pytest.raises(TypeError, match='series: no "z"'):
        picture.draw_chart([{"x": [1], "z": [2]}])
    with pytest.raises(ValueError, match="16384"):
        picture.draw_cloud(CLOUD, panel_width=10 ** 6)


def test_bars():
    chart = picture.draw_chart([{"name": "ours", "values": [1, 2]}, {"name": "theirs", "values": [3, float("nan")]}],
                               groups=["a", "b"], y="seconds", width=300, height=200)
    assert chart.numpy().shape == (200, 300, 3)
