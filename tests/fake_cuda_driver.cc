// A shared library with the entry points of the CUDA driver, built once for every way to behave:
// FAKE_INIT, FAKE_DEVICES, FAKE_MAJOR, FAKE_MINOR; FAKE_HIDES_ATTRIBUTE leaves one symbol out.
#ifndef FAKE_INIT
#define FAKE_INIT 0
#endif
#ifndef FAKE_DEVICES
#define FAKE_DEVICES 1
#endif
#ifndef FAKE_MAJOR
#define FAKE_MAJOR 9
#endif
#ifndef FAKE_MINOR
#define FAKE_MINOR 0
#endif

namespace {
constexpr int kInvalidDevice = 101;  // CUDA_ERROR_INVALID_DEVICE
constexpr int kInvalidValue = 1;
constexpr int kDevice = 7;  // a handle, not an ordinal
bool started = false;
}  // namespace

extern "C" int cuInit(unsigned flags) {
  started = flags == 0 && FAKE_INIT == 0;
  return FAKE_INIT;
}

extern "C" int cuDeviceGet(int* device, int ordinal) {
  if (!started || ordinal >= FAKE_DEVICES) return kInvalidDevice;
  *device = kDevice + ordinal;
  return 0;
}

#ifndef FAKE_HIDES_ATTRIBUTE
extern "C" int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device != kDevice) return kInvalidDevice;
  if (attribute == 75) {
    *value = FAKE_MAJOR;
  } else if (attribute == 76) {
    *value = FAKE_MINOR;
  } else {
    return kInvalidValue;
  }
  return 0;
}
#endif
