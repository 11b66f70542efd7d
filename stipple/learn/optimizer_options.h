#pragma once
// What an optimiser is told; recipes hold it, so torch is not seen here.

namespace stipple::learn {

enum class OptimizerKind {
    sgd,    // v = momentum v + g + decay p; p -= rate v
    adam,   // [Kingma and Ba 2015], decay joins the gradient
    adamw,  // [Loshchilov and Hutter 2019], decay apart: p -= rate decay p
};

struct OptimizerOptions {
    OptimizerKind kind = OptimizerKind::adamw;
    double weight_decay = 0;  // of all parameters
    double momentum = 0.9;    // of sgd
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};

}  // namespace stipple::learn
