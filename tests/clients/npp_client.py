"""Calls of NPP through ctypes, each compared with NumPy. usage: npp_client.py [PART OF A NAME]

A call is `run(library, function, arguments…)`; the stream context that ends every argument list is filled in.
"""
import ctypes
import glob
import os
import sys
import time

import numpy as np

FOLDER = next(place for place in glob.glob(os.path.join(sys.prefix, "lib", "python*", "site-packages", "nvidia", "cu13", "lib")))
ONLY = sys.argv[1] if len(sys.argv) > 1 else ""


class Size(ctypes.Structure):
    _fields_ = [("width", ctypes.c_int), ("height", ctypes.c_int)]


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_int)]


class Rect(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_int), ("width", ctypes.c_int), ("height", ctypes.c_int)]


class StreamContext(ctypes.Structure):
    _fields_ = [("stream", ctypes.c_void_p), ("device", ctypes.c_int), ("multiprocessors", ctypes.c_int),
                ("threads_per_multiprocessor", ctypes.c_int), ("threads_per_block", ctypes.c_int), ("shared_bytes", ctypes.c_size_t),
                ("major", ctypes.c_int), ("minor", ctypes.c_int), ("flags", ctypes.c_uint), ("workspace", ctypes.c_uint)]


def load(name):
    return ctypes.CDLL(os.path.join(FOLDER, f"libnpp{name}.so.13"), mode=ctypes.RTLD_GLOBAL)


# All before the first call of the driver, which takes a device for which the libraries that are there have PTX.
NAMES = ("c", "s", "ial", "icc", "idei", "if", "ig", "im", "ist", "itc")
NPP = {name: load(name) for name in NAMES}
CUDA = ctypes.CDLL("libcuda.so.1")


def driver(function, *arguments):
    status = getattr(CUDA, function)(*arguments)
    assert status == 0, f"{function}: {status}"


def attribute(number):
    value = ctypes.c_int()
    driver("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
    return value.value


def start():
    context = ctypes.c_void_p()
    driver("cuInit", 0)
    driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    driver("cuCtxSetCurrent", context)
    return StreamContext(None, 0, attribute(16), attribute(39), attribute(1), attribute(8), attribute(75), attribute(76), 0, 0)


STREAM = start()


class Device:
    """An array on the device."""

    def __init__(self, array):
        self.array = np.ascontiguousarray(array)
        self.pointer = ctypes.c_uint64()
        driver("cuMemAlloc_v2", ctypes.byref(self.pointer), ctypes.c_size_t(max(self.array.nbytes, 1)))
        driver("cuMemcpyHtoD_v2", self.pointer, self.array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self.array.nbytes))

    @property
    def step(self):
        return self.array.strides[0]

    def host(self):
        driver("cuMemcpyDtoH_v2", self.array.ctypes.data_as(ctypes.c_void_p), self.pointer, ctypes.c_size_t(self.array.nbytes))
        return self.array


def c(value):
    """As C has it: arrays are pointers, numbers as they are typed."""
    if isinstance(value, Device):
        return ctypes.c_void_p(value.pointer.value)
    if isinstance(value, np.ndarray):
        return value.ctypes.data_as(ctypes.c_void_p)
    return value


def run(library, function, *arguments):
    status = getattr(NPP[library], function)(*[c(argument) for argument in arguments], STREAM)
    if status != 0:
        raise RuntimeError(f"{function}: NPP status {status}")
    driver("cuCtxSynchronize")


def work_memory(library, function, *arguments):
    """What a function wants for its work, asked with `function`."""
    size = ctypes.c_size_t()
    run(library, function, *arguments, ctypes.byref(size))
    return Device(np.zeros(size.value + 8, np.uint8))


CASES = []


def case(function):
    CASES.append(function)
    return function


RANDOM = np.random.default_rng(5)
SIGNAL = RANDOM.standard_normal(10007).astype(np.float32)
OTHER = RANDOM.standard_normal(10007).astype(np.float32)
LENGTH = ctypes.c_size_t(SIGNAL.size)
HEIGHT, WIDTH = 61, 83
IMAGE = RANDOM.integers(0, 256, (HEIGHT, WIDTH), dtype=np.uint8)
COLOUR = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
WHOLE = Size(WIDTH, HEIGHT)
INNER = Size(WIDTH - 2, HEIGHT - 2)  # where a window of 3 x 3 has all its pixels


def exact(got, want):
    np.testing.assert_array_equal(got, want)


def near(got, want, most):
    np.testing.assert_allclose(got, want, rtol=most, atol=most)


def windows():
    """The nine neighbours of each inner pixel."""
    return np.lib.stride_tricks.sliding_window_view(IMAGE, (3, 3)).reshape(HEIGHT - 2, WIDTH - 2, 9).astype(np.int64)


def inner(device):
    """Address of the pixel (1, 1)."""
    return ctypes.c_void_p(device.pointer.value + device.step + 1)


def image_to_image(library, function, source, result, size, *more):
    """Functions whose arguments begin with source, its step, destination, its step, size."""
    result = Device(result)
    run(library, function, Device(source), source.strides[0], result, result.step, size, *more)
    return result.host()


@case
def signal_add():
    result = Device(np.zeros_like(SIGNAL))
    run("s", "nppsAdd_32f_Ctx", Device(SIGNAL), Device(OTHER), result, LENGTH)
    exact(result.host(), SIGNAL + OTHER)


@case
def signal_times_constant():
    result = Device(np.zeros_like(SIGNAL))
    run("s", "nppsMulC_32f_Ctx", Device(SIGNAL), ctypes.c_float(1.5), result, LENGTH)
    exact(result.host(), SIGNAL * np.float32(1.5))


@case
def signal_root():
    result = Device(np.zeros_like(SIGNAL))
    run("s", "nppsSqrt_32f_Ctx", Device(np.abs(SIGNAL)), result, LENGTH)
    near(result.host(), np.sqrt(np.abs(SIGNAL)), 1e-6)


@case
def signal_sum():
    result = Device(np.zeros(1, np.float32))
    run("s", "nppsSum_32f_Ctx", Device(SIGNAL), LENGTH, result, work_memory("s", "nppsSumGetBufferSize_32f_Ctx", LENGTH))
    near(result.host()[0], SIGNAL.sum(dtype=np.float64), 1e-3)


@case
def signal_largest():
    result = Device(np.zeros(1, np.float32))
    run("s", "nppsMax_32f_Ctx", Device(SIGNAL), LENGTH, result, work_memory("s", "nppsMaxGetBufferSize_32f_Ctx", LENGTH))
    exact(result.host()[0], SIGNAL.max())


@case
def image_add():
    one, two = (RANDOM.standard_normal((HEIGHT, WIDTH)).astype(np.float32) for _ in range(2))
    result = Device(np.zeros_like(one))
    run("ial", "nppiAdd_32f_C1R_Ctx", Device(one), one.strides[0], Device(two), two.strides[0], result, result.step, WHOLE)
    exact(result.host(), one + two)


@case
def image_add_constant():
    result = Device(np.zeros_like(IMAGE))
    run("ial", "nppiAddC_8u_C1RSfs_Ctx", Device(IMAGE), IMAGE.strides[0], ctypes.c_uint8(70), result, result.step, WHOLE, 0)
    exact(result.host(), np.minimum(IMAGE.astype(int) + 70, 255))


@case
def image_grey():
    got = image_to_image("icc", "nppiRGBToGray_8u_C3C1R_Ctx", COLOUR, np.zeros_like(IMAGE), WHOLE)
    want = COLOUR @ np.array([0.299, 0.587, 0.114])
    assert np.abs(got - want).max() <= 1.0, np.abs(got - want).max()


@case
def image_transpose():
    exact(image_to_image("idei", "nppiTranspose_8u_C1R_Ctx", IMAGE, np.zeros((WIDTH, HEIGHT), np.uint8), WHOLE), IMAGE.T)


@case
def image_set():
    result = Device(np.zeros_like(IMAGE))
    run("idei", "nppiSet_8u_C1R_Ctx", ctypes.c_uint8(77), result, result.step, WHOLE)
    exact(result.host(), np.full_like(IMAGE, 77))


@case
def image_border():
    result = Device(np.zeros((HEIGHT + 5, WIDTH + 7), np.uint8))
    run("idei", "nppiCopyConstBorder_8u_C1R_Ctx", Device(IMAGE), IMAGE.strides[0], WHOLE, result, result.step, Size(WIDTH + 7, HEIGHT + 5), 2, 3,
        ctypes.c_uint8(9))
    exact(result.host(), np.pad(IMAGE, ((2, 3), (3, 4)), constant_values=9))


@case
def image_box_filter():
    source, result = Device(IMAGE), Device(np.zeros((HEIGHT - 2, WIDTH - 2), np.uint8))
    run("if", "nppiFilterBox_8u_C1R_Ctx", inner(source), source.step, result, result.step, INNER, Size(3, 3), Point(1, 1))
    assert np.abs(result.host() - windows().mean(axis=2)).max() <= 1.0


@case
def image_box_filter_border():
    """FilterBorderControlNPP's and boxFilterNPP's call."""
    result = Device(np.zeros_like(IMAGE))
    run("if", "nppiFilterBoxBorder_8u_C1R_Ctx", Device(IMAGE), IMAGE.strides[0], WHOLE, Point(0, 0), result, result.step, WHOLE, Size(3, 3),
        Point(1, 1), 2)  # NPP_BORDER_REPLICATE
    want = np.lib.stride_tricks.sliding_window_view(np.pad(IMAGE, 1, mode="edge"), (3, 3)).mean(axis=(2, 3))
    assert np.abs(result.host() - want).max() <= 1.0


@case
def image_dilate_and_erode():
    for function, reduce in (("nppiDilate3x3_8u_C1R_Ctx", np.max), ("nppiErode3x3_8u_C1R_Ctx", np.min)):
        source, result = Device(IMAGE), Device(np.zeros((HEIGHT - 2, WIDTH - 2), np.uint8))
        run("im", function, inner(source), source.step, result, result.step, INNER)
        exact(result.host(), reduce(windows(), axis=2))


@case
def image_mirror():
    exact(image_to_image("ig", "nppiMirror_8u_C1R_Ctx", IMAGE, np.zeros_like(IMAGE), WHOLE, 0), IMAGE[::-1])  # NPP_HORIZONTAL_AXIS


@case
def image_resize():
    result = Device(np.zeros((HEIGHT * 2, WIDTH * 3), np.uint8))
    run("ig", "nppiResize_8u_C1R_Ctx", Device(IMAGE), IMAGE.strides[0], WHOLE, Rect(0, 0, WIDTH, HEIGHT), result, result.step,
        Size(WIDTH * 3, HEIGHT * 2), Rect(0, 0, WIDTH * 3, HEIGHT * 2), 1)  # NPPI_INTER_NN
    exact(result.host(), IMAGE.repeat(2, axis=0).repeat(3, axis=1))


@case
def image_sum():
    work = work_memory("ist", "nppiSumGetBufferHostSize_8u_C1R_Ctx", WHOLE)
    result = Device(np.zeros(1))
    run("ist", "nppiSum_8u_C1R_Ctx", Device(IMAGE), IMAGE.strides[0], WHOLE, work, result)
    exact(result.host()[0], IMAGE.sum(dtype=np.int64))


@case
def image_mean_and_deviation():
    work = work_memory("ist", "nppiMeanStdDevGetBufferHostSize_8u_C1R_Ctx", WHOLE)
    mean, deviation = Device(np.zeros(1)), Device(np.zeros(1))
    run("ist", "nppiMean_StdDev_8u_C1R_Ctx", Device(IMAGE), IMAGE.strides[0], WHOLE, work, mean, deviation)
    near(mean.host()[0], IMAGE.mean(), 1e-6)
    near(deviation.host()[0], IMAGE.std(), 1e-6)


@case
def image_histogram():
    """histEqualizationNPP's call."""
    work = work_memory("ist", "nppiHistogramEvenGetBufferSize_8u_C1R_Ctx", WHOLE, 257)
    result = Device(np.zeros(256, np.int32))
    run("ist", "nppiHistogramEven_8u_C1R_Ctx", Device(IMAGE), IMAGE.strides[0], WHOLE, result, 257, 0, 256, work)
    exact(result.host(), np.bincount(IMAGE.ravel(), minlength=256))


@case
def image_table():
    """histEqualizationNPP's second call: each grey becomes the value of a table. What becomes of the last level is not documented."""
    levels = np.arange(256, dtype=np.int32)
    values = RANDOM.integers(0, 256, 256).astype(np.int32)
    got = image_to_image("icc", "nppiLUT_8u_C1R_Ctx", IMAGE, np.zeros_like(IMAGE), WHOLE, Device(values), Device(levels), 256)
    exact(got[IMAGE < 255], values[IMAGE[IMAGE < 255]])


def regions(image):
    """A number for each connected region of equal pixels, neighbours at edges only."""
    labels = np.full(image.shape, -1)
    for start_at in np.ndindex(image.shape):
        if labels[start_at] >= 0:
            continue
        number, todo = labels.max() + 1, [start_at]
        labels[start_at] = number
        while todo:
            y, x = todo.pop()
            for near_by in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if 0 <= near_by[0] < image.shape[0] and 0 <= near_by[1] < image.shape[1] and labels[near_by] < 0 and \
                        image[near_by] == image[y, x]:
                    labels[near_by] = number
                    todo.append(near_by)
    return labels


@case
def image_labels():
    """The same regions, whatever their numbers are. Squares: of regions of single pixels NPP's kernels leave some in two parts."""
    squares = np.kron(RANDOM.integers(0, 2, (HEIGHT // 8 + 1, WIDTH // 8 + 1)), np.ones((8, 8), int))
    black_and_white = np.ascontiguousarray(squares[:HEIGHT, :WIDTH] * 255).astype(np.uint8)
    size = ctypes.c_int()
    status = NPP["if"].nppiLabelMarkersUFGetBufferSize_32u_C1R(WHOLE, ctypes.byref(size))
    assert status == 0, status
    got = image_to_image("if", "nppiLabelMarkersUF_8u32u_C1R_Ctx", black_and_white, np.zeros((HEIGHT, WIDTH), np.uint32), WHOLE, 1,
                         Device(np.zeros(size.value, np.uint8)))  # nppiNormL1
    want = regions(black_and_white)
    pairs = set(zip(got.ravel().tolist(), want.ravel().tolist()))
    assert len(pairs) == want.max() + 1 == len({a for a, b in pairs}), (len(pairs), want.max() + 1)


def main():
    failed = 0
    for function in CASES:
        if ONLY not in function.__name__:
            continue
        begin = time.time()
        try:
            function()
            said = "agrees"
        except (AssertionError, RuntimeError) as error:
            failed += 1
            said = " ".join(str(error).split())[:300]
        print(f"{function.__name__}: {said} ({time.time() - begin:.1f} s)", flush=True)
    print(f"{failed} calls differ or are refused" if failed else "all calls agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
