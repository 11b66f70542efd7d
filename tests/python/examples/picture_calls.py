"""One call of every function of stipple.picture, and examples."""
import numpy as np
from stipple import geometry, io, picture

MESH = geometry.torus_mesh()
CLOUD = io.PointCloud(np.array(MESH.positions), attributes={"label": (np.arange(2048) // 512).astype(np.uint8)})

CALLS = {
    "draw_cloud": lambda: picture.draw_cloud(CLOUD, color_by="label", panel_width=200, panel_height=150, view="top"),
    "draw_mesh": lambda: picture.draw_mesh(MESH, panel_width=200, panel_height=150, mesh_color="#88aacc", edges=True),
    "draw_figure": lambda: picture.draw_figure(
        [MESH, {"cloud": CLOUD, "caption": "points", "color_by": "z"}], panel_width=160, panel_height=120,
        title="two panels", color_map="magma").image,
    "draw_chart": lambda: picture.draw_chart(
        [{"name": "a", "x": [1, 2, 3], "y": np.array([1.0, 4, 9])}, {"x": [1, 3], "y": [2, 2], "dashed": True}],
        x="epoch", y={"label": "loss", "logarithmic": True}, width=300, height=200),
    "training_chart": lambda: picture.training_chart(
        [{"name": "train", "epochs": [1, 2], "values": [1.0, 0.5]}], [{"name": "test", "epochs": [1, 2], "values": [0.5, 0.9]}],
        width=300, height=200),
    "chart_color": lambda: picture.chart_color(2, dark=True),
    "map_color": lambda: picture.map_color("viridis", 0.5),
    "category_color": lambda: picture.category_color(3),
    "color_map_names": lambda: picture.color_map_names(),
}
