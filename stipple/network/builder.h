#pragma once
// Builder: writes a Network layer by layer. Every call infers the type at once, so a mistake is reported by the line
// that makes it: Error{bad_argument} with the layer's name, what it needs and what it got.
//
// Layers are in the order of the calls, and compilers evaluate the arguments of a call in different orders: of the
// arguments of one call, at most one may call the builder (a test looks for others). The parts of a braced list, as of
// concat(), are evaluated from the left.

#include "stipple/network/network.h"

namespace stipple::network {

/// For linear(): what follows the product.
struct LinearOptions {
    bool bias = true;
    bool norm = false;
    float norm_eps = 1e-5f;
    Activation activation = {};
    Initialiser weights = Initialiser::fan_in_uniform;
};

class Builder {
public:
    explicit Builder(std::string network_name) { network_.name = std::move(network_name); }

    Tensor input(std::string name, TensorType type);
    Tensor linear(std::string name, Tensor x, int64_t channels, const LinearOptions& options = {});
    /// A second use of another layer's parameters.
    Tensor linear_sharing(std::string name, Tensor x, int64_t channels, const LinearOptions& options,
                          std::string parameters);
    Tensor activation(std::string name, Tensor x, Activation activation);
    Tensor dropout(std::string name, Tensor x, float rate);
    Tensor transform(std::string name, Tensor x, Tensor matrix);
    Tensor add_identity(std::string name, Tensor matrix);
    Tensor max_points(std::string name, Tensor x);
    Tensor sum_points(std::string name, Tensor x);
    Tensor max_rows(std::string name, Tensor x);
    Tensor sum_channels(std::string name, Tensor x);
    Tensor concat(std::string name, std::vector<Tensor> parts);
    Tensor slice(std::string name, Tensor x, int64_t begin, int64_t end);
    Tensor reverse(std::string name, Tensor x);
    Tensor repeat(std::string name, Tensor x, int64_t width = 1);
    Tensor knn(std::string name, Tensor points, int64_t k);
    Tensor gather(std::string name, Tensor x, Tensor indices);
    Tensor edge(std::string name, Tensor x, Tensor indices);
    Tensor edge_distance(std::string name, Tensor x, Tensor indices);
    Tensor softmax_rows(std::string name, Tensor x);
    Tensor interpolate(std::string name, Tensor weights, Tensor values);
    Tensor log_softmax(std::string name, Tensor x);
    Tensor add(std::string name, Tensor x, Tensor y);
    Tensor subtract(std::string name, Tensor x, Tensor y);
    Tensor scale(std::string name, Tensor x, float factor);
    /// Flow layers: `parameters` names the layer whose parameters they use, their own when empty.
    Tensor actnorm(std::string name, Tensor x, bool inverse = false, std::string parameters = {});
    Tensor mix(std::string name, Tensor x, bool inverse = false, std::string parameters = {});
    Tensor couple(std::string name, Tensor x, Tensor t, int64_t begin, bool inverse = false);
    Tensor inject(std::string name, Tensor x, Tensor s, Tensor b, bool inverse = false);
    Tensor flow_log_det(std::string name, Tensor x, std::string parameters);
    Tensor gaussian_log_density(std::string name, Tensor z);

    void output(std::string name, Tensor tensor);

    const TensorType& type(Tensor tensor) const { return network_[tensor].type; }

    /// Validates and hands over.
    Network finish(std::map<std::string, std::string> config = {});

private:
    Tensor add_layer(std::string name, Kind kind, std::vector<Tensor> inputs, LayerOptions options = {},
                     std::string parameters = {});

    Network network_;
};

}  // namespace stipple::network
