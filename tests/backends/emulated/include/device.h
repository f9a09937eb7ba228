// What CUDA's compiler knows without being told, for kernels that run on the host.
#pragma once

#include <crt/host_defines.h>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <math.h>
#include <stdlib.h>
#include <type_traits>
#include <utility>

#define __CUDACC_VER_MAJOR__ 12
#define __CUDA_ARCH__ 900

struct emu_index {
    unsigned x, y, z;
};
extern "C" {
extern emu_index emu_thread, emu_block, emu_block_size, emu_grid_size;
extern char* emu_dynamic_shared;
void emu_wait_for_block();
void emu_wait_for_warp();
unsigned emu_lane(); // of the block's threads
}
#define threadIdx emu_thread
#define blockIdx emu_block
#define blockDim emu_block_size
#define gridDim emu_grid_size
constexpr int warpSize = 32;

#define __syncthreads() emu_wait_for_block()
inline void __syncwarp(unsigned = ~0u) { emu_wait_for_warp(); }
inline void __threadfence() {}
inline void __threadfence_block() {}

// --- words that go from thread to thread of a warp ---

inline char emu_words[1024][16];

template <class T> T emu_exchange(T mine, unsigned from) {
    static_assert(sizeof(T) <= 16);
    unsigned lane = emu_lane();
    memcpy(emu_words[lane], &mine, sizeof(T));
    emu_wait_for_warp();
    T other;
    memcpy(&other, emu_words[from], sizeof(T));
    emu_wait_for_warp();
    return other;
}
// Lanes of the same group of `width`; a thread keeps its own word where there is no other.
template <class T> T __shfl_sync(unsigned, T x, int from, int width = 32) {
    unsigned lane = emu_lane();
    return emu_exchange(x, lane / width * width + from % width);
}
template <class T> T __shfl_down_sync(unsigned, T x, unsigned by, int width = 32) {
    unsigned lane = emu_lane(), from = lane + by;
    return emu_exchange(x, from / width == lane / width && from < emu_block_size.x ? from : lane);
}
template <class T> T __shfl_up_sync(unsigned, T x, unsigned by, int width = 32) {
    unsigned lane = emu_lane();
    return emu_exchange(x, lane % width >= by ? lane - by : lane);
}
template <class T> T __shfl_xor_sync(unsigned, T x, int with, int width = 32) {
    unsigned lane = emu_lane(), from = lane ^ with;
    return emu_exchange(x, from / width == lane / width ? from : lane);
}

// --- atomic operations: one thread runs at a time ---

template <class T, class F> T emu_change(T* at, F f) {
    T old = *at;
    *at = f(old);
    return old;
}
#define EMU_ATOMIC(name, T, result) \
    inline T name(T* at, T x) { \
        return emu_change(at, [&](T old) { return static_cast<T>(result); }); \
    }
#define EMU_ATOMIC_OF_WHOLE(name, result) \
    EMU_ATOMIC(name, int, result) EMU_ATOMIC(name, unsigned, result) EMU_ATOMIC(name, unsigned long long, result)
EMU_ATOMIC_OF_WHOLE(atomicAdd, old + x)
EMU_ATOMIC(atomicAdd, float, old + x)
EMU_ATOMIC(atomicAdd, double, old + x)
EMU_ATOMIC(atomicSub, int, old - x)
EMU_ATOMIC(atomicSub, unsigned, old - x)
EMU_ATOMIC_OF_WHOLE(atomicExch, x)
EMU_ATOMIC(atomicExch, float, x)
EMU_ATOMIC_OF_WHOLE(atomicMin, old < x ? old : x)
EMU_ATOMIC(atomicMin, long long, old < x ? old : x)
EMU_ATOMIC_OF_WHOLE(atomicMax, old > x ? old : x)
EMU_ATOMIC(atomicMax, long long, old > x ? old : x)
EMU_ATOMIC_OF_WHOLE(atomicAnd, old& x)
EMU_ATOMIC_OF_WHOLE(atomicOr, old | x)
EMU_ATOMIC_OF_WHOLE(atomicXor, old ^ x)
template <class T> T atomicCAS(T* at, T expected, T x) {
    return emu_change(at, [&](T old) { return old == expected ? x : old; });
}

// --- bits ---

template <class To, class From> To emu_bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}
inline long long __double_as_longlong(double x) { return emu_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emu_bits<double>(x); }
inline int __float_as_int(float x) { return emu_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return emu_bits<unsigned>(x); }
inline float __int_as_float(int x) { return emu_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return emu_bits<float>(x); }
inline int __double2hiint(double x) { return int(emu_bits<unsigned long long>(x) >> 32); }
inline int __double2loint(double x) { return int(emu_bits<unsigned long long>(x)); }
inline double __hiloint2double(int high, int low) {
    return emu_bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
template <class T> T __ldg(const T* at) { return *at; }

// --- functions of numbers ---

template <class A, class B> using emu_both =
    std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>>;
template <class A, class B> emu_both<A, B> min(A a, B b) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>)
        return std::fmin(T(a), T(b));
    else
        return T(b) < T(a) ? T(b) : T(a);
}
template <class A, class B> emu_both<A, B> max(A a, B b) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>)
        return std::fmax(T(a), T(b));
    else
        return T(a) < T(b) ? T(b) : T(a);
}

inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }

// Of double numbers, and through them of single ones.
#define EMU_FUNCTION(name, x, ...) \
    inline double name(double x) { __VA_ARGS__ } \
    inline float name##f(float x) { return float(name(double(x))); } \
    inline float name(float x) { return name##f(x); }

EMU_FUNCTION(rsqrt, x, return 1.0 / sqrt(x);)
EMU_FUNCTION(rcbrt, x, return 1.0 / cbrt(x);)
EMU_FUNCTION(sinpi, x, double r = fmod(x, 2.0);
             return fabs(r) == 1.0
                        ? 0.0 * x
                        : sin(M_PI * (fabs(r) > 0.5 ? copysign(1.0, r) * (fabs(r) > 1.5 ? fabs(r) - 2.0 : 1.0 - fabs(r))
                                                    : r));)
EMU_FUNCTION(cospi, x, double r = fabs(fmod(x, 2.0));
             return r == 0.5 || r == 1.5 ? 0.0 : cos(M_PI * (r > 1.0 ? 2.0 - r : r));)
// Within a rounding error or so of exact: exp(x^2) with the rounding error of x^2.
EMU_FUNCTION(
    erfcx, x,
    if (x > 25.0) {
        double t = 0.5 / (x * x), sum = 1.0, term = 1.0;
        for (int k = 1; k < 12; ++k) sum += term *= -(2 * k - 1) * t;
        return sum / x * 0.56418958354775628695;
    } double square = x * x;
    return exp(square) * (1.0 + fma(x, x, -square)) * erfc(x);)
// Newton's method, from an approximation by elementary functions (Winitzki's).
EMU_FUNCTION(
    erfinv, y, if (!(fabs(y) < 1.0)) return fabs(y) == 1.0 ? y * HUGE_VAL : NAN;
    double l = log1p(-y * y), a = 4.33 + 0.5 * l; double x = copysign(sqrt(sqrt(a * a - l / 0.147) - a), y);
    for (int i = 0; i < 4; ++i) {
        double error = (fabs(y) < 0.5 ? erf(x) - y : ((1.0 - fabs(y)) - erfc(fabs(x))) * copysign(1.0, y)) *
                       0.88622692545275801365 * exp(x * x);
        x -= error / (1.0 + x * error);
    } return x;)
EMU_FUNCTION(
    erfcinv, y, if (y > 0.5) return erfinv(1.0 - y); if (!(y > 0.0)) return y == 0.0 ? HUGE_VAL : NAN;
    double x = sqrt(-log(y)); for (int i = 0; i < 60; ++i) {
        double step = log(erfc(x) / y) * erfcx(x) * 0.88622692545275801365; // of log(erfc(x))
        x += step;
        if (fabs(step) < 1e-15 * x) break;
    } return x;)
EMU_FUNCTION(normcdf, x, return 0.5 * erfc(-x * M_SQRT1_2);)
EMU_FUNCTION(normcdfinv, p, return -M_SQRT2 * erfcinv(2.0 * p);)
EMU_FUNCTION(cyl_bessel_i0, x, return std::cyl_bessel_i(0.0, fabs(x));)
EMU_FUNCTION(cyl_bessel_i1, x, return copysign(std::cyl_bessel_i(1.0, fabs(x)), x);)
inline void sincospi(double x, double* s, double* c) {
    *s = sinpi(x);
    *c = cospi(x);
}
inline void sincospif(float x, float* s, float* c) {
    *s = sinpif(x);
    *c = cospif(x);
}
inline void sincos(float x, float* s, float* c) { sincosf(x, s, c); }
inline float exp10(float x) { return exp10f(x); }

// Names that CUDA's compiler leaves to the kernels.
#undef M_E
#undef M_PI
#undef M_PI_2
#undef M_PI_4
#undef M_1_PI
#undef M_2_PI
#undef M_2_SQRTPI
#undef M_LN2
#undef M_LN10
#undef M_LOG2E
#undef M_LOG10E
#undef M_SQRT2
#undef M_SQRT1_2

// --- how the driver calls a kernel: by the addresses of its arguments ---

template <class... A, size_t... I> void emu_call(void (*kernel)(A...), void** p, std::index_sequence<I...>) {
    kernel(*(std::remove_const_t<A>*)p[I]...);
}
template <class... A> void emu_call(void (*kernel)(A...), void** p) {
    emu_call(kernel, p, std::index_sequence_for<A...>());
}
template <class... A> const size_t* emu_sizes(void (*)(A...)) {
    static const size_t sizes[] = {sizeof(A)..., 0};
    return sizes;
}
#define EMU_KERNEL(name, ...) \
    extern "C" void emu_kernel_##name(void** p) { emu_call(&__VA_ARGS__, p); } \
    extern "C" const size_t* emu_sizes_##name() { return emu_sizes(&__VA_ARGS__); }
