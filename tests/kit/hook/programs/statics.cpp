// A C++ program whose global objects use CUDA: before main begins, and after it has ended.
#include <cuda.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "workload/spin.h"

namespace {

void must(CUresult result, const char *what) {
    if (result == CUDA_SUCCESS)
        return;
    std::printf("%s: %d\n", what, static_cast<int>(result));
    std::_Exit(1);
}

class Device {
public:
    Device() {
        CUdevice device;
        must(cuInit(0), "cuInit");
        must(cuDeviceGet(&device, 0), "cuDeviceGet");
        must(cuDevicePrimaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain");
        must(cuCtxSetCurrent(context_), "cuCtxSetCurrent");
        must(cuModuleLoadData(&module_, SPIN_PTX), "cuModuleLoadData");
        must(cuModuleGetFunction(&spin_, module_, "spin"), "cuModuleGetFunction");
        spin(1000000);
        std::puts("launched before main");
    }

    ~Device() {
        spin(1000000);
        must(cuCtxSynchronize(), "cuCtxSynchronize");
        must(cuDevicePrimaryCtxRelease(0), "cuDevicePrimaryCtxRelease");
        std::puts("waited after main");
    }

    void spin(unsigned long long ns) const {
        void *parameters[] = {&ns};
        must(cuLaunchKernel(spin_, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
    }

private:
    CUcontext context_{};
    CUmodule module_{};
    CUfunction spin_{};
};

class Buffer {
public:
    explicit Buffer(std::size_t bytes) { must(cuMemAlloc(&memory_, bytes), "cuMemAlloc"); }
    ~Buffer() { std::printf("freed: %d\n", static_cast<int>(cuMemFree(memory_))); }
    Buffer(const Buffer &) = delete;
    CUdeviceptr at() const { return memory_; }

private:
    CUdeviceptr memory_{};
};

Device device;
Buffer buffer(1 << 20);

}  // namespace

int main() {
    std::vector<char> bytes(1 << 20, 'y'), back(1 << 20);
    must(cuMemcpyHtoD(buffer.at(), bytes.data(), bytes.size()), "cuMemcpyHtoD");
    device.spin(500000);
    must(cuMemcpyDtoH(back.data(), buffer.at(), back.size()), "cuMemcpyDtoH");
    std::printf("same: %d\n", bytes == back);
    return 5;
}
