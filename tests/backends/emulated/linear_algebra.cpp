// cuBLAS and cuSOLVER, as far as CuPy calls them: products by their definition, and LAPACK's functions by SciPy's
// LAPACK, which gpu.py hands over by name. Matrices lie by columns in both. Sizes and strides that CUDA's libraries refuse
// are refused; and where the mathematics leaves a choice (signs and phases of vectors, bases of null spaces, the order of
// eigenvalues), it is another one than that of the host's LAPACK, so that nobody leans on that.
#include <recording.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

using f32 = float;
using f64 = double;
using c64 = std::complex<float>;
using c128 = std::complex<double>;
#define FOR_ALL_TYPES(DO) DO(S, s, f32) DO(D, d, f64) DO(C, c, c64) DO(Z, z, c128)

namespace {

constexpr int NOT_SUPPORTED = 15, INVALID = 7, SOLVER_INVALID = 3;

bool fits(int64_t ld, int rows) { return ld >= std::max(1, rows); }

template <class T> struct real_of {
    using type = T;
};
template <class T> struct real_of<std::complex<T>> {
    using type = T;
};
template <class T> using real_t = typename real_of<T>::type;
template <class T> constexpr bool is_complex = !std::is_same_v<T, real_t<T>>;
template <class T> using wide = std::conditional_t<is_complex<T>, c128, f64>;
template <class T> T conj_(T x) {
    if constexpr (is_complex<T>)
        return std::conj(x);
    else
        return x;
}

// An element of op(a): 0 as it is, 1 transposed, 2 conjugated as well.
template <class T> T at(const T* a, int64_t ld, int op, int64_t i, int64_t j) {
    return op == 0 ? a[i + j * ld] : op == 1 ? a[j + i * ld] : conj_(a[j + i * ld]);
}

template <class T> int gemm(int ta, int tb, int m, int n, int k, const T* alpha, const T* a, int64_t lda, const T* b,
                            int64_t ldb, const T* beta, T* c, int64_t ldc) {
    if (m < 0 || n < 0 || k < 0 || !fits(lda, ta ? k : m) || !fits(ldb, tb ? n : k) || !fits(ldc, m)) return INVALID;
    std::vector<wide<T>> column(k);
    for (int j = 0; j < n; ++j) {
        for (int l = 0; l < k; ++l) column[l] = at(b, ldb, tb, l, j);
        for (int i = 0; i < m; ++i) {
            wide<T> sum = 0;
            for (int l = 0; l < k; ++l) sum += wide<T>(at(a, lda, ta, i, l)) * column[l];
            T& out = c[i + j * ldc];
            out = T(wide<T>(*alpha) * sum) + (*beta == T(0) ? T(0) : *beta * out);
        }
    }
    return 0;
}

template <class T> int trsm(int side, int upper, int op, int unit, int m, int n, const T* alpha, const T* a,
                            int64_t lda, T* b, int64_t ldb) {
    if (m < 0 || n < 0 || !fits(lda, side == 1 ? n : m) || !fits(ldb, m)) return INVALID;
    const bool right = side == 1, falling = (upper == 1) == ((op == 0) != right);
    const int size = right ? n : m, lines = right ? m : n;
    for (int line = 0; line < lines; ++line) {
        auto x = [&](int i) -> T& { return right ? b[line + i * ldb] : b[i + line * ldb]; };
        auto matrix = [&](int i, int j) { return right ? at(a, lda, op, j, i) : at(a, lda, op, i, j); };
        for (int step = 0; step < size; ++step) {
            int i = falling ? size - 1 - step : step;
            T sum = *alpha * x(i);
            for (int j = falling ? i + 1 : 0; j < (falling ? size : i); ++j) sum -= matrix(i, j) * x(j);
            x(i) = unit ? sum : sum / matrix(i, i);
        }
    }
    return 0;
}

template <class T> int dot(int n, const T* x, int dx, const T* y, int dy, T* out, bool conjugate) {
    wide<T> sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += wide<T>(conjugate ? conj_(x[i * dx]) : x[i * dx]) * wide<T>(y[i * dy]);
    *out = T(sum);
    return 0;
}

template <class T> int geam(int ta, int tb, int m, int n, const T* alpha, const T* a, int lda, const T* beta,
                            const T* b, int ldb, T* c, int ldc) {
    if (m < 0 || n < 0 || !fits(lda, ta ? n : m) || !fits(ldb, tb ? n : m) || !fits(ldc, m)) return INVALID;
    for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i)
            c[i + j * ldc] = (*alpha == T(0) ? T(0) : *alpha * at(a, lda, ta, i, j)) +
                             (*beta == T(0) ? T(0) : *beta * at(b, ldb, tb, i, j));
    return 0;
}

template <class F> int by_type(int type, F f) {
    switch (type) { // cudaDataType
    case 0:
        return f(f32());
    case 1:
        return f(f64());
    case 4:
        return f(c64());
    case 5:
        return f(c128());
    default:
        return NOT_SUPPORTED;
    }
}

// --- LAPACK ---

std::unordered_map<std::string, void*> lapack;

// Call a function of LAPACK, all of whose arguments are addresses.
template <class... A> void call(const std::string& name, A... a) {
    auto found = lapack.find(name);
    if (found == lapack.end()) {
        fprintf(stderr, "emulated GPU: no %s in LAPACK\n", name.c_str());
        abort();
    }
    ((void (*)(A...))found->second)(a...);
}

const char UPLO[] = "LU", TRANS[] = "NTC", SIDE[] = "LR", JOB[] = "NV";
template <class T> std::string letter() {
    return std::is_same_v<T, f32> ? "s" : std::is_same_v<T, f64> ? "d" : std::is_same_v<T, c64> ? "c" : "z";
}
template <class T> std::string named(const char* real, const char* complex) {
    return letter<T>() + (is_complex<T> ? complex : real);
}

// --- choices ---

// A number of absolute value 1 that vector `j` is multiplied by.
template <class T> T phase(int j) {
    if (j % 2 == 0) return 1;
    if constexpr (is_complex<T>)
        return T(0, 1);
    else
        return -1;
}

template <class T> void multiply(T* x, int64_t step, int n, T by) {
    for (int i = 0; i < n; ++i) x[i * step] *= by;
}

// Another basis of what `count` orthonormal vectors of `n` elements span, the vectors `next` and the elements `step` apart.
template <class T> void turn(T* first, int64_t next, int64_t step, int n, int count) {
    const real_t<T> cosine = 0.6, sine = 0.8;
    for (int j = 0; j + 1 < count; ++j)
        for (int i = 0; i < n; ++i) {
            T &a = first[j * next + i * step], &b = first[(j + 1) * next + i * step], old = a;
            a = cosine * old + sine * b, b = cosine * b - sine * old;
        }
    if (count > 0) multiply(first, step, n, T(-1));
}

template <class T> int eigh(int job, int uplo, int n, T* a, int lda, real_t<T>* w, int* info) {
    int size = 70 * (n + 1);
    std::vector<T> work(size);
    std::vector<real_t<T>> more(3 * n + 1);
    char j = JOB[job], u = UPLO[uplo];
    if constexpr (is_complex<T>)
        call(letter<T>() + "heev", &j, &u, &n, a, &lda, w, work.data(), &size, more.data(), info);
    else
        call(letter<T>() + "syev", &j, &u, &n, a, &lda, w, work.data(), &size, info);
    for (int k = 0; k < n && job; ++k) multiply(a + int64_t(k) * lda, 1, n, phase<T>(k));
    return 0;
}

template <class T>
int svd(char u_job, char v_job, int m, int n, T* a, int lda, real_t<T>* s, T* u, int ldu, T* vt, int ldvt, int* info) {
    int size = 70 * (m + n + 1);
    std::vector<T> work(size);
    std::vector<real_t<T>> more(5 * std::min(m, n) + 1);
    if constexpr (is_complex<T>)
        call(letter<T>() + "gesvd", &u_job, &v_job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size,
             more.data(), info);
    else
        call(letter<T>() + "gesvd", &u_job, &v_job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size, info);
    if (u_job == 'N' || v_job == 'N') return 0;
    const int k = std::min(m, n);
    if (u_job == 'O') u = a, ldu = lda;
    if (v_job == 'O') vt = a, ldvt = lda;
    for (int j = 0; j < k; ++j) {
        multiply(u + int64_t(j) * ldu, 1, m, phase<T>(j));
        multiply(vt + j, ldvt, n, conj_(phase<T>(j)));
    }
    if (u_job == 'A') turn(u + int64_t(k) * ldu, ldu, 1, m, m - k);
    if (v_job == 'A') turn(vt + k, 1, ldvt, n, n - k);
    return 0;
}

// As `svd`, with V where that gives its conjugate transpose.
template <class T>
int svd_v(int job, int economic, int m, int n, T* a, int lda, real_t<T>* s, T* u, int ldu, T* v, int ldv, int* info) {
    int k = economic ? std::min(m, n) : n;
    std::vector<T> vt(std::max(1, k * n));
    char how = job == 0 ? 'N' : economic ? 'S' : 'A';
    svd(how, how, m, n, a, lda, s, u, ldu, vt.data(), std::max(1, k), info);
    for (int i = 0; i < n && job; ++i)
        for (int j = 0; j < k; ++j) v[i + int64_t(j) * ldv] = conj_(vt[j + i * k]);
    return 0;
}

template <class T> int eig(int right, int n, T* a, int lda, std::complex<real_t<T>>* w, T* v, int ldv, int* info) {
    int size = 70 * (n + 1), one = 1;
    std::vector<T> work(size), none(1);
    std::vector<real_t<T>> more(2 * n + 1);
    if constexpr (is_complex<T>) {
        call(letter<T>() + "geev", JOB, &JOB[right], &n, a, &lda, w, none.data(), &one, v, &ldv, work.data(), &size,
             more.data(), info);
    } else {
        T *re = more.data(), *im = re + n;
        call(letter<T>() + "geev", JOB, &JOB[right], &n, a, &lda, re, im, none.data(), &one, v, &ldv, work.data(),
             &size, info);
        for (int i = 0; i < n; ++i) w[i] = {re[i], im[i]};
    }
    std::reverse(w, w + n);
    for (int j = 0; j < n && right; ++j) multiply(v + int64_t(j) * ldv, 1, n, is_complex<T> ? phase<T>(1) : T(-1));
    for (int j = 0; j < n / 2 && right; ++j)
        std::swap_ranges(v + int64_t(j) * ldv, v + int64_t(j) * ldv + n, v + int64_t(n - 1 - j) * ldv);
    for (int j = 0; j + 1 < n && !is_complex<T>; ++j)
        if (w[j].imag() < 0) { // a pair, whose first has the positive imaginary part, and the real part of the vectors
            std::swap(w[j], w[j + 1]);
            if (right) std::swap_ranges(v + int64_t(j) * ldv, v + int64_t(j) * ldv + n, v + int64_t(j + 1) * ldv);
            ++j;
        }
    return 0;
}

template <class T> int inverse(int n, T* a, int lda, const int* pivots, T* out, int ldout, int* info) {
    for (int j = 0; j < n; ++j) std::copy_n(a + int64_t(j) * lda, n, out + int64_t(j) * ldout);
    int size = 64 * (n + 1);
    std::vector<T> work(size);
    std::vector<int> none(n);
    for (int i = 0; i < n; ++i) none[i] = i + 1;
    call(letter<T>() + "getri", &n, out, &ldout, pivots ? (int*)pivots : none.data(), work.data(), &size, info);
    for (int j = 0; j < n && *info; ++j) std::fill_n(out + int64_t(j) * ldout, n, T(NAN)); // singular
    return 0;
}

} // namespace

extern "C" {

void emu_provide(const char* name, void* function) { lapack[name] = function; }

// --- cuBLAS ---

using H = void*; // a handle
int cublasCreate_v2(H* handle) {
    *handle = new int;
    return 0;
}
int cublasDestroy_v2(H) { return 0; }
int cublasGetVersion_v2(H, int* version) {
    *version = 120900;
    return 0;
}
int cublasSetStream_v2(H, H) { return 0; }
int cublasGetStream_v2(H, H* stream) {
    *stream = nullptr;
    return 0;
}
int cublasSetPointerMode_v2(H, int) { return 0; }
int cublasGetPointerMode_v2(H, int* mode) {
    *mode = 0;
    return 0;
}
int cublasSetWorkspace_v2(H, void*, size_t) { return 0; }
int cublasSetMathMode(H, int) { return 0; }
int cublasGetMathMode(H, int* mode) {
    *mode = 0;
    return 0;
}

#define BLAS(L, l, T) \
    int cublas##L##gemm_v2(H, int ta, int tb, int m, int n, int k, T* alpha, T* a, int lda, T* b, int ldb, T* beta, \
                           T* c, int ldc) { \
        return gemm<T>(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); \
    } \
    int cublas##L##gemmBatched(H, int ta, int tb, int m, int n, int k, T* alpha, T** a, int lda, T** b, int ldb, \
                               T* beta, T** c, int ldc, int batch) { \
        int wrong = 0; \
        for (int i = 0; i < batch; ++i) \
            wrong |= gemm<T>(ta, tb, m, n, k, alpha, a[i], lda, b[i], ldb, beta, c[i], ldc); \
        return wrong; \
    } \
    int cublas##L##gemmStridedBatched(H, int ta, int tb, int m, int n, int k, T* alpha, T* a, int lda, long long sa, \
                                      T* b, int ldb, long long sb, T* beta, T* c, int ldc, long long sc, int batch) { \
        int wrong = 0; \
        for (int i = 0; i < batch; ++i) \
            wrong |= gemm<T>(ta, tb, m, n, k, alpha, a + i * sa, lda, b + i * sb, ldb, beta, c + i * sc, ldc); \
        return wrong; \
    } \
    int cublas##L##trsm_v2(H, int side, int uplo, int op, int unit, int m, int n, T* alpha, T* a, int lda, T* b, \
                           int ldb) { \
        return trsm<T>(side, uplo, op, unit, m, n, alpha, a, lda, b, ldb); \
    } \
    int cublas##L##trsmBatched(H, int side, int uplo, int op, int unit, int m, int n, T* alpha, T** a, int lda, T** b, \
                               int ldb, int batch) { \
        int wrong = 0; \
        for (int i = 0; i < batch; ++i) wrong |= trsm<T>(side, uplo, op, unit, m, n, alpha, a[i], lda, b[i], ldb); \
        return wrong; \
    } \
    int cublas##L##geam(H, int ta, int tb, int m, int n, T* alpha, T* a, int lda, T* beta, T* b, int ldb, T* c, \
                        int ldc) { \
        return geam<T>(ta, tb, m, n, alpha, a, lda, beta, b, ldb, c, ldc); \
    } \
    int cublas##L##getrfBatched(H, int n, T** a, int lda, int* pivots, int* info, int batch) { \
        if (n < 0 || !fits(lda, n)) return INVALID; \
        std::vector<int> own(n + 1); \
        for (int i = 0; i < batch; ++i) \
            call(#l "getrf", &n, &n, a[i], &lda, pivots ? pivots + i * n : own.data(), info + i); \
        return 0; \
    } \
    int cublas##L##getrsBatched(H, int op, int n, int nrhs, T** a, int lda, int* pivots, T** b, int ldb, int* info, \
                                int batch) { \
        if (n < 0 || nrhs < 0 || !fits(lda, n) || !fits(ldb, n)) return INVALID; \
        char t = TRANS[op]; \
        for (int i = 0; i < batch; ++i) call(#l "getrs", &t, &n, &nrhs, a[i], &lda, pivots + i * n, b[i], &ldb, info); \
        return 0; \
    } \
    int cublas##L##getriBatched(H, int n, T** a, int lda, int* pivots, T** c, int ldc, int* info, int batch) { \
        for (int i = 0; i < batch; ++i) \
            inverse<T>(n, a[i], lda, pivots ? pivots + i * n : nullptr, c[i], ldc, info + i); \
        return 0; \
    }
FOR_ALL_TYPES(BLAS)

int cublasSdot_v2(H, int n, f32* x, int dx, f32* y, int dy, f32* out) { return dot(n, x, dx, y, dy, out, false); }
int cublasDdot_v2(H, int n, f64* x, int dx, f64* y, int dy, f64* out) { return dot(n, x, dx, y, dy, out, false); }
int cublasCdotu_v2(H, int n, c64* x, int dx, c64* y, int dy, c64* out) { return dot(n, x, dx, y, dy, out, false); }
int cublasZdotu_v2(H, int n, c128* x, int dx, c128* y, int dy, c128* out) { return dot(n, x, dx, y, dy, out, false); }
int cublasCdotc_v2(H, int n, c64* x, int dx, c64* y, int dy, c64* out) { return dot(n, x, dx, y, dy, out, true); }
int cublasZdotc_v2(H, int n, c128* x, int dx, c128* y, int dy, c128* out) { return dot(n, x, dx, y, dy, out, true); }

int cublasGemmStridedBatchedEx(H, int ta, int tb, int m, int n, int k, void* alpha, void* a, int a_type, int lda,
                               long long sa, void* b, int b_type, int ldb, long long sb, void* beta, void* c,
                               int c_type, int ldc, long long sc, int batch, int, int) {
    if (a_type != b_type || a_type != c_type) return NOT_SUPPORTED;
    return by_type(a_type, [&](auto zero) {
        using T = decltype(zero);
        if (recorded) {
            now_or_in_replay([=, one = *(T*)alpha, none = *(T*)beta]() mutable {
                cublasGemmStridedBatchedEx(0, ta, tb, m, n, k, &one, a, a_type, lda, sa, b, b_type, ldb, sb, &none, c,
                                           c_type, ldc, sc, batch, 0, 0);
            });
            return 0;
        }
        int wrong = 0;
        for (int i = 0; i < batch; ++i)
            wrong |= gemm<T>(ta, tb, m, n, k, (T*)alpha, (T*)a + i * sa, lda, (T*)b + i * sb, ldb, (T*)beta,
                             (T*)c + i * sc, ldc);
        return wrong;
    });
}
int cublasGemmEx(H h, int ta, int tb, int m, int n, int k, void* alpha, void* a, int a_type, int lda, void* b,
                 int b_type, int ldb, void* beta, void* c, int c_type, int ldc, int compute, int how) {
    return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c, c_type,
                                      ldc, 0, 1, compute, how);
}
int cublasSgemmEx(H h, int ta, int tb, int m, int n, int k, void* alpha, void* a, int a_type, int lda, void* b,
                  int b_type, int ldb, void* beta, void* c, int c_type, int ldc) {
    return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, 0, 0);
}

// --- cuSOLVER ---

int cusolverDnCreate(H* handle) { return cublasCreate_v2(handle); }
int cusolverDnDestroy(H) { return 0; }
int cusolverDnSetStream(H, H) { return 0; }
int cusolverDnGetStream(H, H* stream) {
    *stream = nullptr;
    return 0;
}
int cusolverGetProperty(int which, int* value) {
    *value = which == 0 ? 11 : which == 1 ? 7 : 5;
    return 0;
}
int cusolverDnCreateParams(H* params) { return cublasCreate_v2(params); }
int cusolverDnDestroyParams(H) { return 0; }
int cusolverDnCreateSyevjInfo(H* params) { return cublasCreate_v2(params); }
int cusolverDnDestroySyevjInfo(H) { return 0; }
int cusolverDnCreateGesvdjInfo(H* params) { return cublasCreate_v2(params); }
int cusolverDnDestroyGesvdjInfo(H) { return 0; }
int cusolverDnXgesvdjSetTolerance(H, f64) { return 0; }
int cusolverDnXgesvdjSetMaxSweeps(H, int) { return 0; }
int cusolverDnXgesvdjSetSortEig(H, int) { return 0; }
int cusolverDnXsyevjSetTolerance(H, f64) { return 0; }
int cusolverDnXsyevjSetMaxSweeps(H, int) { return 0; }
int cusolverDnXsyevjSetSortEig(H, int) { return 0; }

#define SOLVER(L, l, T) \
    int cusolverDn##L##potrf_bufferSize(H, int, int, T*, int, int* size) { \
        *size = 1; \
        return 0; \
    } \
    int cusolverDn##L##potrf(H, int uplo, int n, T* a, int lda, T*, int, int* info) { \
        call(#l "potrf", &UPLO[uplo], &n, a, &lda, info); \
        return 0; \
    } \
    int cusolverDn##L##potrs(H, int uplo, int n, int nrhs, T* a, int lda, T* b, int ldb, int* info) { \
        call(#l "potrs", &UPLO[uplo], &n, &nrhs, a, &lda, b, &ldb, info); \
        return 0; \
    } \
    int cusolverDn##L##potrfBatched(H, int uplo, int n, T** a, int lda, int* info, int batch) { \
        for (int i = 0; i < batch; ++i) call(#l "potrf", &UPLO[uplo], &n, a[i], &lda, info + i); \
        return 0; \
    } \
    int cusolverDn##L##getrf_bufferSize(H, int, int, T*, int, int* size) { \
        *size = 1; \
        return 0; \
    } \
    int cusolverDn##L##getrf(H, int m, int n, T* a, int lda, T*, int* pivots, int* info) { \
        call(#l "getrf", &m, &n, a, &lda, pivots, info); \
        return 0; \
    } \
    int cusolverDn##L##getrs(H, int op, int n, int nrhs, T* a, int lda, int* pivots, T* b, int ldb, int* info) { \
        call(#l "getrs", &TRANS[op], &n, &nrhs, a, &lda, pivots, b, &ldb, info); \
        return 0; \
    } \
    int cusolverDn##L##geqrf_bufferSize(H, int, int n, T*, int, int* size) { \
        *size = 64 * (n + 1); \
        return 0; \
    } \
    int cusolverDn##L##geqrf(H, int m, int n, T* a, int lda, T* tau, T* work, int size, int* info) { \
        call(#l "geqrf", &m, &n, a, &lda, tau, work, &size, info); \
        return 0; \
    } \
    int cusolverDn##L##gesvd_bufferSize(H, int, int, int* size) { \
        *size = 1; \
        return 0; \
    } \
    int cusolverDn##L##gesvd(H, signed char u_job, signed char v_job, int m, int n, T* a, int lda, real_t<T>* s, T* u, \
                             int ldu, T* vt, int ldvt, T*, int, real_t<T>*, int* info) { \
        if (m < n || !fits(lda, m)) return SOLVER_INVALID; \
        return svd<T>(u_job, v_job, m, n, a, lda, s, u, ldu, vt, ldvt, info); \
    } \
    int cusolverDn##L##gesvdj_bufferSize(H, int, int, int, int, T*, int, real_t<T>*, T*, int, T*, int, int* size, H) { \
        *size = 1; \
        return 0; \
    } \
    int cusolverDn##L##gesvdj(H, int job, int economic, int m, int n, T* a, int lda, real_t<T>* s, T* u, int ldu, \
                              T* v, int ldv, T*, int, int* info, H) { \
        return svd_v<T>(job, economic, m, n, a, lda, s, u, ldu, v, ldv, info); \
    } \
    int cusolverDn##L##gesvdjBatched_bufferSize(H, int, int, int, T*, int, real_t<T>*, T*, int, T*, int, int* size, H, \
                                                int) { \
        *size = 1; \
        return 0; \
    } \
    int cusolverDn##L##gesvdjBatched(H, int job, int m, int n, T* a, int lda, real_t<T>* s, T* u, int ldu, T* v, \
                                     int ldv, T*, int, int* info, H, int batch) { \
        if (m > 32 || n > 32 || !fits(lda, m)) return SOLVER_INVALID; \
        for (int64_t i = 0; i < batch; ++i) \
            svd_v<T>(job, 0, m, n, a + i * lda * n, lda, s + i * std::min(m, n), u + i * ldu * m, ldu, \
                     v + i * ldv * n, ldv, info + i); \
        return 0; \
    }
FOR_ALL_TYPES(SOLVER)

#define ORTHOGONAL(L, l, T, orgqr, ormqr, syev) \
    int cusolverDn##L##orgqr##_bufferSize(H, int, int n, int, T*, int, T*, int* size) { \
        *size = 64 * (n + 1); \
        return 0; \
    } \
    int cusolverDn##L##orgqr(H, int m, int n, int k, T* a, int lda, T* tau, T* work, int size, int* info) { \
        call(#l #orgqr, &m, &n, &k, a, &lda, tau, work, &size, info); \
        return 0; \
    } \
    int cusolverDn##L##ormqr##_bufferSize(H, int, int, int m, int n, int, T*, int, T*, T*, int, int* size) { \
        *size = 64 * (m + n + 1); \
        return 0; \
    } \
    int cusolverDn##L##ormqr(H, int side, int op, int m, int n, int k, T* a, int lda, T* tau, T* c, int ldc, T* work, \
                             int size, int* info) { \
        call(#l #ormqr, &SIDE[side], &TRANS[op], &m, &n, &k, a, &lda, tau, c, &ldc, work, &size, info); \
        return 0; \
    } \
    int cusolverDn##L##syev##d_bufferSize(H, int, int, int, T*, int, real_t<T>*, int* size) { \
        *size = 1; \
        return 0; \
    } \
    int cusolverDn##L##syev##d(H, int job, int uplo, int n, T* a, int lda, real_t<T>* w, T*, int, int* info) { \
        return eigh<T>(job, uplo, n, a, lda, w, info); \
    } \
    int cusolverDn##L##syev##j_bufferSize(H, int, int, int, T*, int, real_t<T>*, int* size, H) { \
        *size = 1; \
        return 0; \
    } \
    int cusolverDn##L##syev##j(H, int job, int uplo, int n, T* a, int lda, real_t<T>* w, T*, int, int* info, H) { \
        return eigh<T>(job, uplo, n, a, lda, w, info); \
    } \
    int cusolverDn##L##syev##jBatched_bufferSize(H, int, int, int, T*, int, real_t<T>*, int* size, H, int) { \
        *size = 1; \
        return 0; \
    } \
    int cusolverDn##L##syev##jBatched(H, int job, int uplo, int n, T* a, int lda, real_t<T>* w, T*, int, int* info, H, \
                                      int batch) { \
        for (int64_t i = 0; i < batch; ++i) eigh<T>(job, uplo, n, a + i * lda * n, lda, w + i * n, info + i); \
        return 0; \
    }
ORTHOGONAL(S, s, f32, orgqr, ormqr, syev)
ORTHOGONAL(D, d, f64, orgqr, ormqr, syev)
ORTHOGONAL(C, c, c64, ungqr, unmqr, heev)
ORTHOGONAL(Z, z, c128, ungqr, unmqr, heev)

int cusolverDnXsyevd_bufferSize(H, H, int, int, int64_t, int, void*, int64_t, int, void*, int, size_t* device,
                                size_t* host) {
    *device = *host = 8;
    return 0;
}
int cusolverDnXsyevd(H, H, int job, int uplo, int64_t n, int type, void* a, int64_t lda, int, void* w, int, void*,
                     size_t, void*, size_t, int* info) {
    return by_type(type, [&](auto zero) {
        using T = decltype(zero);
        return eigh<T>(job, uplo, n, (T*)a, lda, (real_t<T>*)w, info);
    });
}

int cusolverDnXgeev_bufferSize(H, H, int, int, int64_t, int, void*, int64_t, int, void*, int, void*, int64_t, int,
                               void*, int64_t, int, size_t* device, size_t* host) {
    *device = *host = 8;
    return 0;
}
int cusolverDnXgeev(H, H, int, int right, int64_t n, int type, void* a, int64_t lda, int, void* w, int, void*, int64_t,
                    int, void* v, int64_t ldv, int, void*, size_t, void*, size_t, int* info) {
    return by_type(type, [&](auto zero) {
        using T = decltype(zero);
        return eig<T>(right, n, (T*)a, lda, (std::complex<real_t<T>>*)w, (T*)v, ldv, info);
    });
}

} // extern "C"
