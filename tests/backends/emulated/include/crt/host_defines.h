// The words of CUDA C++, for a C++ compiler of the host. CUDA's own headers ask for this file, which the wheels lack.
#pragma once

#define __host__
#define __device__
#define __global__
#define __constant__ static
#define __shared__ static  // one block runs at a time
#define __managed__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __inline_hint__
#define __no_return__ __attribute__((noreturn))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __launch_bounds__(...)
#define __location__(a)
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __specialization_static
#define CUDARTAPI
#define CUDARTAPI_CDECL
