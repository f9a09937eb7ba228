// cuFFT, as far as CuPy calls it: Fourier transforms by their definition.
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

using f32 = float;
using f64 = double;
using c64 = std::complex<float>;
using c128 = std::complex<double>;

namespace {

template <class T> constexpr bool is_complex = !std::is_floating_point_v<T>;

struct Plan {
    int type;
    std::vector<int> n;
    int64_t in_step, in_batch, out_step, out_batch;
    std::vector<int> in_shape, out_shape;
    int batch;
};

// Transform along one axis of an array whose axes are `n`.
void along(std::vector<c128>& x, const std::vector<int>& n, size_t axis, int sign) {
    int64_t inner = 1, size = n[axis];
    for (size_t d = axis + 1; d < n.size(); ++d) inner *= n[d];
    std::vector<c128> turns(size), line(size);
    for (int64_t k = 0; k < size; ++k) turns[k] = std::polar(1.0, sign * 2 * M_PI * k / size);
    for (int64_t first = 0; first < int64_t(x.size()); ++first) {
        if (first / inner % size) continue;
        for (int64_t k = 0; k < size; ++k) {
            line[k] = 0;
            for (int64_t j = 0; j < size; ++j) line[k] += turns[k * j % size] * x[first + j * inner];
        }
        for (int64_t k = 0; k < size; ++k) x[first + k * inner] = line[k];
    }
}

// Where an element lies, given its number in an array of shape n and the shape of the memory.
int64_t offset(int64_t element, const std::vector<int>& n, const std::vector<int>& shape, int64_t step) {
    int64_t sum = 0, size = 1;
    for (int d = int(n.size()) - 1; d >= 0; --d) {
        sum += element % n[d] * size;
        element /= n[d], size *= shape[d];
    }
    return sum * step;
}

template <class In, class Out> int transform(const Plan& plan, const In* in, Out* out, int sign) {
    std::vector<int> half = plan.n;
    half.back() = half.back() / 2 + 1;
    const auto& in_n = is_complex<In> && !is_complex<Out> ? half : plan.n;
    const auto& out_n = is_complex<Out> && !is_complex<In> ? half : plan.n;
    int64_t in_size = 1, out_size = 1;
    for (int d : in_n) in_size *= d;
    for (int d : out_n) out_size *= d;
    for (int b = 0; b < plan.batch; ++b) {
        std::vector<c128> x(in_size);
        for (int64_t i = 0; i < in_size; ++i)
            x[i] = c128(in[b * plan.in_batch + offset(i, in_n, plan.in_shape, plan.in_step)]);
        for (size_t axis = 0; axis + 1 < plan.n.size(); ++axis) along(x, in_n, axis, sign);
        if (in_n != plan.n) { // the other half of the last axis is the conjugate of this one
            std::vector<c128> full;
            for (int64_t line = 0, k = half.back(), n = plan.n.back(); line < in_size; line += k)
                for (int64_t i = 0; i < n; ++i) full.push_back(i < k ? x[line + i] : std::conj(x[line + n - i]));
            x = full;
        }
        along(x, plan.n, plan.n.size() - 1, sign);
        for (int64_t i = 0; i < out_size; ++i) {
            int64_t n = out_n.back(), from = i / n * plan.n.back() + i % n;
            Out& to = out[b * plan.out_batch + offset(i, out_n, plan.out_shape, plan.out_step)];
            if constexpr (is_complex<Out>)
                to = Out(x[from]);
            else
                to = Out(x[from].real());
        }
    }
    return 0;
}

std::vector<Plan> plans;

} // namespace

extern "C" {

int cufftCreate(int* plan) {
    *plan = plans.size();
    plans.push_back({});
    return 0;
}
int cufftDestroy(int) { return 0; }
int cufftGetVersion(int* version) {
    *version = 11400;
    return 0;
}
int cufftSetAutoAllocation(int, int) { return 0; }
int cufftSetStream(int, void*) { return 0; }
int cufftSetWorkArea(int, void*) { return 0; }
int cufftMakePlanMany(int plan, int rank, int* n, int* in_shape, int in_step, int in_batch, int* out_shape,
                      int out_step, int out_batch, int type, int batch, size_t* size) {
    Plan p{type, std::vector<int>(n, n + rank), 1, 0, 1, 0, {}, {}, batch};
    auto half = p.n;
    half.back() = half.back() / 2 + 1;
    p.in_shape = type == 0x2c || type == 0x6c ? half : p.n;
    p.out_shape = type == 0x2a || type == 0x6a ? half : p.n;
    p.in_batch = p.out_batch = 1;
    for (int d : p.in_shape) p.in_batch *= d;
    for (int d : p.out_shape) p.out_batch *= d;
    if (in_shape && out_shape) {
        p.in_shape.assign(in_shape, in_shape + rank), p.out_shape.assign(out_shape, out_shape + rank);
        p.in_step = in_step, p.in_batch = in_batch, p.out_step = out_step, p.out_batch = out_batch;
    }
    plans[plan] = p;
    *size = 0;
    return 0;
}
int cufftMakePlan1d(int plan, int n, int type, int batch, size_t* size) {
    return cufftMakePlanMany(plan, 1, &n, nullptr, 1, 0, nullptr, 1, 0, type, batch, size);
}
int cufftExecC2C(int plan, c64* in, c64* out, int sign) { return transform(plans[plan], in, out, sign); }
int cufftExecZ2Z(int plan, c128* in, c128* out, int sign) { return transform(plans[plan], in, out, sign); }
int cufftExecR2C(int plan, f32* in, c64* out) { return transform(plans[plan], in, out, -1); }
int cufftExecD2Z(int plan, f64* in, c128* out) { return transform(plans[plan], in, out, -1); }
int cufftExecC2R(int plan, c64* in, f32* out) { return transform(plans[plan], in, out, 1); }
int cufftExecZ2D(int plan, c128* in, f64* out) { return transform(plans[plan], in, out, 1); }

} // extern "C"
