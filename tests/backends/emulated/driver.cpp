// CUDA's driver and runtime, as far as CuPy calls them, on the host's memory and one core: what a GPU would do at some
// later time is done at once. Kernels are libraries that gpu.py has compiled.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <recording.h>
#include <ucontext.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

// What a kernel reads: where its thread is. One thread runs at a time, so these are plain variables.
struct Index {
    unsigned x, y, z;
};
extern "C" {
Index emu_thread, emu_block, emu_block_size, emu_grid_size;
char* emu_dynamic_shared;
}

namespace {

using Entry = void (*)(void**);
using Sizes = const size_t* (*)();
struct Kernel {
    Entry entry;
    bool meets;  // its threads wait for each other
    Sizes sizes; // of its arguments, and 0
};

constexpr size_t STACK = 1 << 16;
std::mutex one_launch;
long launches;

void place(unsigned t) {
    emu_thread = {t % emu_block_size.x, t / emu_block_size.x % emu_block_size.y,
                  t / emu_block_size.x / emu_block_size.y};
}

// --- threads of one block that wait for each other: coroutines, each run until it must wait ---

enum State { RUNNING, AT_BLOCK, AT_WARP, DONE };
struct Fiber {
    ucontext_t context;
    State state;
};
std::vector<Fiber> fibers;
std::vector<char> stacks;
ucontext_t scheduler;
unsigned current;
Entry entry;
void** arguments;

void body() {
    entry(arguments);
    fibers[current].state = DONE;
    swapcontext(&fibers[current].context, &scheduler);
}

void wait_as(State state) {
    fibers[current].state = state;
    swapcontext(&fibers[current].context, &scheduler);
}

// Let those go on whose companions (from `first` to `last`) all wait, or are done.
bool release(unsigned first, unsigned last, State state) {
    bool any = false;
    for (unsigned t = first; t < last; ++t) {
        if (fibers[t].state != state && fibers[t].state != DONE) return false;
        any |= fibers[t].state == state;
    }
    for (unsigned t = first; t < last; ++t)
        if (fibers[t].state == state) fibers[t].state = RUNNING;
    return any;
}

bool run_block_of_fibers(unsigned n) {
    if (fibers.size() < n) {
        fibers.resize(n);
        stacks.resize(n * STACK);
    }
    for (unsigned t = 0; t < n; ++t) {
        getcontext(&fibers[t].context);
        fibers[t].context.uc_stack.ss_sp = &stacks[t * STACK];
        fibers[t].context.uc_stack.ss_size = STACK;
        fibers[t].context.uc_link = nullptr;
        makecontext(&fibers[t].context, body, 0);
        fibers[t].state = RUNNING;
    }
    for (;;) {
        bool all_done = true;
        for (current = 0; current < n; ++current) {
            if (fibers[current].state == RUNNING) {
                place(current);
                swapcontext(&scheduler, &fibers[current].context);
            }
            all_done &= fibers[current].state == DONE;
        }
        if (all_done) return true;
        bool any = release(0, n, AT_BLOCK);
        for (unsigned w = 0; w < n; w += 32) any |= release(w, w + 32 < n ? w + 32 : n, AT_WARP);
        for (unsigned t = 0; t < n && !any; ++t) any = fibers[t].state == RUNNING;
        if (!any) return false; // some wait for the block, others for their warp
    }
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

} // namespace

extern "C" {

// --- called by kernels ---

void emu_wait_for_block() { wait_as(AT_BLOCK); }
void emu_wait_for_warp() { wait_as(AT_WARP); }
unsigned emu_lane() { return current; }

// --- asked by Python ---

long emu_launches() { return launches; }
int emu_is_recording() { return recorded != nullptr; }
void emu_record(void (*step)()) { recorded->push_back(step); }

// --- the driver ---

#define SAY(name) fprintf(stderr, "emulated GPU: %s is not there\n", name)

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult error, const char** text) {
    *text = error == CUDA_ERROR_INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE" : "CUDA_ERROR";
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** text) { return cuGetErrorName(error, text); }
CUresult cuCtxGetCurrent(CUcontext* context) {
    *context = (CUcontext)16;
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* device) {
    *device = 0;
    return CUDA_SUCCESS;
}
CUresult cuStreamGetCtx(CUstream, CUcontext* context) { return cuCtxGetCurrent(context); }
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }

// A module's image is the path of a library.
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    *module = (CUmodule)dlopen((const char*)image, RTLD_NOW | RTLD_LOCAL);
    if (!*module) SAY(dlerror());
    return *module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}
CUresult cuModuleLoad(CUmodule* module, const char* path) { return cuModuleLoadData(module, path); }
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    Entry found = (Entry)dlsym(module, (std::string("emu_kernel_") + name).c_str());
    if (!found) {
        SAY(name);
        return CUDA_ERROR_NOT_FOUND;
    }
    Sizes sizes = (Sizes)dlsym(module, (std::string("emu_sizes_") + name).c_str());
    *function = (CUfunction) new Kernel{found, dlsym(module, "emu_threads_meet") != nullptr, sizes};
    return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction) {
    *value = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, CUfunction, int, size_t) {
    *n = 1;
    return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction, CUoccupancyB2DSize, size_t, int) {
    *grid = 1, *block = 128;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** parameters, void**) {
    if (bx * by * bz > 1024 || shared > 48 << 10 || gy > 65535 || gz > 65535) return CUDA_ERROR_INVALID_VALUE;
    if (recorded) {
        std::vector<std::string> bytes;
        for (const size_t* size = ((Kernel*)function)->sizes(); *size; ++size)
            bytes.emplace_back((char*)parameters[bytes.size()], *size);
        recorded->push_back([=]() mutable {
            std::vector<void*> given;
            for (std::string& b : bytes) given.push_back(b.data());
            cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, given.data(), nullptr);
        });
        return CUDA_SUCCESS;
    }
    std::lock_guard<std::mutex> lock(one_launch);
    const Kernel& kernel = *(Kernel*)function;
    ++launches;
    std::vector<char> memory(shared + 1);
    emu_dynamic_shared = memory.data();
    emu_grid_size = {gx, gy, gz}, emu_block_size = {bx, by, bz};
    entry = kernel.entry, arguments = parameters;
    for (emu_block.z = 0; emu_block.z < gz; ++emu_block.z)
        for (emu_block.y = 0; emu_block.y < gy; ++emu_block.y)
            for (emu_block.x = 0; emu_block.x < gx; ++emu_block.x) {
                if (kernel.meets) {
                    if (!run_block_of_fibers(bx * by * bz)) return CUDA_ERROR_LAUNCH_TIMEOUT;
                } else
                    for (unsigned t = 0; t < bx * by * bz; ++t) {
                        place(t);
                        entry(parameters);
                    }
            }
    return CUDA_SUCCESS;
}

// --- the runtime ---

const char* cudaGetErrorName(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) {
    *version = CUDA_VERSION;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDA_VERSION;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
    *can = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int) {
    snprintf(id, length, "0000:00:00.0");
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
    switch (which) {
    case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = 4;
        break;
    case cudaDevAttrWarpSize:
        *value = 32;
        break;
    case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = 48 << 10;
        break;
    case cudaDevAttrMaxGridDimX:
        *value = 0x7fffffff;
        break;
    default:
        *value = 0;
    }
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int) {
    memset(found, 0, sizeof *found);
    strcpy(found->name, "emulated on a CPU");
    found->major = 9, found->warpSize = 32, found->multiProcessorCount = 4, found->maxThreadsPerBlock = 1024;
    found->totalGlobalMem = size_t(4) << 30, found->sharedMemPerBlock = 48 << 10;
    return cudaSuccess;
}

// Memory is full of NaNs at first, so that nobody takes it for zeros.
cudaError_t cudaMalloc(void** memory, size_t size) {
    *memory = aligned_alloc(512, (size + 511) / 512 * 512);
    if (!*memory) return cudaErrorMemoryAllocation;
    memset(*memory, 0xff, size);
    return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
    free(memory);
    return cudaSuccess;
}
cudaError_t cudaMallocManaged(void** memory, size_t size, unsigned) { return cudaMalloc(memory, size); }
cudaError_t cudaMallocAsync(void** memory, size_t size, cudaStream_t) { return cudaMalloc(memory, size); }
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) { return cudaFree(memory); }
cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned) {
    *memory = malloc(size ? size : 1);
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
    free(memory);
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    *free = size_t(3) << 30, *total = size_t(4) << 30;
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
    memmove(to, from, size);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind, cudaStream_t) {
    now_or_in_replay([=] { memmove(to, from, size); });
    return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size, cudaStream_t) {
    memmove(to, from, size);
    return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, size_t size) {
    memset(memory, value, size);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t size, cudaStream_t) {
    now_or_in_replay([=] { memset(memory, value, size); });
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* p) {
    memset(found, 0, sizeof *found);
    found->type = cudaMemoryTypeDevice, found->devicePointer = (void*)p;
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    *stream = (cudaStream_t) new int;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
    *status = recorded ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

// A graph is what a stream was given between the begin and the end of its capture, and its own instance.
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
    recorded = new Recorded;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
    *graph = (cudaGraph_t)recorded;
    recorded = nullptr;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph, unsigned long long) {
    *instance = (cudaGraphExec_t)graph;
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
    for (auto& step : *(Recorded*)graph) step();
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete (Recorded*)graph;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
    function(data);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = (cudaEvent_t) new double(0);
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete (double*)event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    *(double*)event = seconds();
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
    *ms = float((*(double*)end - *(double*)start) * 1e3);
    return cudaSuccess;
}

int nvrtcVersion(int* major, int* minor) {
    *major = CUDA_VERSION / 1000, *minor = CUDA_VERSION % 1000 / 10;
    return 0;
}

} // extern "C"
