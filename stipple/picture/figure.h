#pragma once
// Figures: clouds and meshes side by side, with captions, one scale, legends and zoomed insets. Every picture of the
// project is drawn by draw_figure.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stipple/core/image.h"
#include "stipple/picture/camera.h"
#include "stipple/picture/color_map.h"

namespace stipple::picture {

/// One view. A panel may show a cloud, a mesh, both or nothing; what it points to must outlive draw_figure.
struct Panel {
    const PointCloud* cloud = nullptr;
    const Mesh* mesh = nullptr;
    std::string caption = {};
    std::string color_by = {};      // see Coloring: "", "constant", "#rrggbb", "x", "depth", an attribute
    Rgb cloud_color{94, 141, 196};  // of color_by "constant", and where an attribute is missing
    Rgb mesh_color{205, 203, 198};
    double point_radius = 0;  // pixels; 0 takes the figure's
};

enum class Corner { automatic, upper_left, upper_right, lower_left, lower_right };

/// A part of each panel, enlarged in a corner of it. Fractions are of the panel.
struct Inset {
    double x = 0.5, y = 0.5;            // middle of the part, from the left and from the top
    double size = 0.16;                 // side of the part, of the panel's smaller side
    double box = 0.4;                   // side of the enlarged part, of the panel's smaller side
    Corner corner = Corner::automatic;  // automatic: the emptiest, the same in all panels
    Rgb color{214, 64, 60};
};

/// Eye-dome lighting [Boucheny 2009] of clouds: what lies behind the outline of something nearer is darker, so that the
/// lines of a sweep and the points of an airborne scan come apart. `automatic`: panels that show a cloud without
/// normals and no mesh, of LAS or less than a third as high as wide.
enum class EyeDome { automatic, on, off };

struct FigureStyle {
    int64_t panel_width = 512, panel_height = 512;  // pixels
    int64_t columns = 0;                            // 0: as fits the number of panels
    std::string title = {};
    Viewpoint viewpoint = {};
    bool shared_camera = true;  // one camera for all panels, so that sizes and places compare; else each its own
    double point_radius = 0;    // pixels; 0 chooses for each panel by its density
    bool dark = false;          // background
    std::optional<Rgb> background = {};  // instead of white or dark
    double text_size = 0;                // pixels; 0 goes with the panel size

    ColorMap color_map = ColorMap::viridis;
    /// Of values; else the middle 96 % of all panels that are coloured by the same attribute together.
    std::optional<std::pair<double, double>> range = {};
    /// A colour bar or the labels, when some panel needs them: one for all panels, or where they are coloured by
    /// different attributes one beside each.
    bool legend = true;
    std::string legend_title = {};  // "" is the name of what colours the panels, as it is where there are several
    std::map<int64_t, std::string> label_names = {};
    /// Labels that have their colours and places in the legend whether or not a panel shows them, so that a label looks
    /// the same in many figures. Ascending.
    std::vector<int64_t> labels = {};

    bool smooth = true;    // meshes: interpolated normals except at creases; else flat faces
    bool edges = false;    // meshes: lines along the triangles
    double light = 1;      // 0 shows bare colours; true colours are lit weakly in any case
    double occlusion = 1;  // darkening of corners and behind outlines
    EyeDome eye_dome = EyeDome::automatic;
    bool axes = false;             // directions of x, y and z, in a corner of each panel
    bool scale_bar = false;        // exact for orthographic views, for perspective ones at the middle depth
    std::string length_unit = {};  // written on it
    std::optional<Inset> inset = {};
    int64_t samples = 0;  // per pixel and axis, 1 to 4; 0 chooses 2 for large panels up to 4 for small ones
};

struct PanelCounts {
    int64_t points = 0;        // drawn: in front of the camera and within the panel
    int64_t nonfinite = 0;     // points and triangles skipped because a coordinate is not finite
    double low = 0, high = 1;  // the range of its colour map
};

struct Figure {
    Image image;  // RGB
    std::vector<PanelCounts> panels;
    double low = 0, high = 1;                     // the range of the colour map of the first panel that has one
    std::vector<Camera> cameras;                  // of the panels; pixels relative to the panel's corner
    std::vector<std::array<int64_t, 2>> corners;  // upper left pixel of each panel
};

/// Draws panels in rows, from left to right. Clouds of different origins are put in their true relation. No input
/// crashes it: no panels, no points, equal or non-finite points give empty or plain pictures. The pixels do not depend
/// on the number of threads. Throws Error{bad_argument} for sizes out of range (16 to 16384 a side, 2^27 pixels in
/// all), for an attribute to colour by that no panel has, and for meshes that validate() refuses.
Figure draw_figure(std::span<const Panel> panels, const FigureStyle& style);

/// One panel that fills the picture.
Image draw_cloud(const PointCloud& cloud, const FigureStyle& style);
Image draw_mesh(const Mesh& mesh, const FigureStyle& style);

}  // namespace stipple::picture
