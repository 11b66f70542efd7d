#include "tests/support/reference_random.h"

#include "stipple/core/rng.h"
#include "stipple/network/builder.h"

namespace stipple::test {

using network::Activation;
using network::Builder;
using network::clouds_of;
using network::leaky_relu;
using network::Level;
using network::Network;
using network::points_of;
using network::relu;
using network::rows_of;
using network::Tensor;

namespace {

constexpr int64_t kWidth = 3;

/// Draws layers until it has enough; those that do not fit what was drawn are not added. Every call has at most one
/// argument that draws, names or adds: compilers evaluate arguments in different orders.
class Generator {
public:
    explicit Generator(uint64_t seed) : rng_(seed), build_("random") {
        tensors_ = {build_.input("cloud", clouds_of(4)), build_.input("points", points_of(3)),
                    build_.input("rows", rows_of(kWidth, 2))};
        indices_ = build_.knn("knn", tensors_[1], kWidth);
    }

    Network network(int layers) {
        while (static_cast<int>(tensors_.size()) < layers + 3) add_layer();
        for (size_t i = tensors_.size() - 4; i < tensors_.size(); ++i)
            build_.output("out" + std::to_string(i), tensors_[i]);
        return build_.finish();
    }

private:
    uint32_t draw(uint32_t bound) { return rng_.below(drawn_++, bound); }
    std::string name() { return "l" + std::to_string(tensors_.size()) + "-" + std::to_string(names_++); }
    /// Late ones more often: deep networks.
    Tensor any() {
        const uint32_t n = static_cast<uint32_t>(tensors_.size());
        return tensors_[draw(3) == 0 ? draw(n) : n - 1 - draw(std::min(n, 4u))];
    }
    const network::TensorType& type(Tensor x) const { return build_.type(x); }
    bool is_point(Tensor x) const { return type(x).level == Level::point && type(x).width == 1; }
    bool is_wide(Tensor x) const { return type(x).level == Level::point && type(x).width > 1; }
    Activation activation() {
        const Activation all[] = {{}, relu(), leaky_relu(0.25f)};
        return all[draw(3)];
    }
    /// A tensor with the rows of x and so many channels: by a linear layer.
    Tensor like(Tensor x, int64_t channels) { return build_.linear(name(), x, channels); }
    /// Another tensor with the rows of x: one that is there, or one made of x.
    Tensor beside(Tensor x) {
        for (int i = 0; i < 8; ++i) {
            const Tensor y = any();
            if (type(y).level == type(x).level && type(y).width == type(x).width) return y;
        }
        return like(x, 3);
    }

    void add_layer() {
        const Tensor x = any();
        const int64_t channels = type(x).channels;
        switch (draw(19)) {
            case 0:
            case 1:
            case 2: {
                const int64_t outputs = 1 + draw(6);
                return keep(build_.linear(name(), x, outputs, {.bias = draw(2) == 0, .activation = activation()}));
            }
            case 3: return keep(build_.activation(name(), x, relu()));
            case 4: {
                if (channels > 4) return;
                Tensor cloud = tensors_[0];
                for (int i = 0; i < 4; ++i)
                    if (const Tensor y = any(); type(y).level == Level::cloud) cloud = y;
                Tensor matrix = like(cloud, channels * channels);
                if (draw(2) == 0) matrix = build_.add_identity(name(), matrix);
                return keep(build_.transform(name(), x, matrix));
            }
            case 5:
                if (type(x).level == Level::point) keep(build_.max_points(name(), x));
                return;
            case 6:
                if (type(x).level == Level::point) keep(build_.sum_points(name(), x));
                return;
            case 7:
                if (is_wide(x)) keep(build_.max_rows(name(), x));
                return;
            case 8: return keep(build_.sum_channels(name(), x));
            case 9: {
                const Tensor y = beside(x), z = beside(x);
                if (channels + type(y).channels + type(z).channels < 16) keep(build_.concat(name(), {x, y, z}));
                return;
            }
            case 10: {
                const int64_t begin = draw(static_cast<uint32_t>(channels));
                return keep(build_.slice(name(), x, begin, begin + 1 + draw(static_cast<uint32_t>(channels - begin))));
            }
            case 11: return keep(build_.reverse(name(), x));
            case 12:
                if (is_wide(x)) return;
                return keep(build_.repeat(name(), x, is_point(x) ? kWidth : 1));
            case 13:
                if (is_point(x)) keep(build_.gather(name(), x, indices_));
                return;
            case 14:
                if (is_point(x) && channels <= 5) keep(build_.edge(name(), x, indices_));
                return;
            case 15:
                if (is_point(x) && channels <= 4) keep(build_.edge_distance(name(), x, indices_));
                return;
            case 16: {
                const Tensor y = like(beside(x), channels);
                return keep(draw(2) == 0 ? build_.add(name(), x, y) : build_.subtract(name(), y, x));
            }
            case 17: return keep(build_.scale(name(), x, draw(2) == 0 ? 0.5f : -2.0f));
            case 18: {
                const int64_t begin = draw(static_cast<uint32_t>(channels));
                const std::string coupling = name();
                const Tensor t = like(beside(x), channels - begin);
                return keep(build_.couple(coupling, x, t, begin, draw(2) == 0));
            }
            default: return;
        }
    }

    void keep(Tensor x) { tensors_.push_back(x); }

    Rng rng_;
    uint64_t drawn_ = 0, names_ = 0;
    Builder build_;
    std::vector<Tensor> tensors_;
    Tensor indices_ = -1;
};

}  // namespace

Network random_network(uint64_t seed, int layers) {
    return Generator(seed).network(layers);
}

}  // namespace stipple::test
