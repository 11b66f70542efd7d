"""Pictures of clouds, meshes and numbers: an Image, which a notebook shows by itself.

    picture.draw_cloud(cloud, color_by="label", azimuth=30).save("cloud.png")

Options of C++'s FigureStyle, of its Viewpoint and of a Panel are keywords of the same names and defaults; colours are
"#rrggbb" or three numbers. view="top" (auto, iso, front, side, sensor) sets the angles that people name.
"""
from . import _stipple

_public = [_name for _name in dir(_stipple.picture) if not _name.startswith("_")]
globals().update({_name: getattr(_stipple.picture, _name) for _name in _public})
__all__ = _public
