"""Time of work on a device, by the driver's events: simulated time under `gridloom run --timing`."""

import ctypes


class TimerError(RuntimeError):
    """A call of the driver failed, or there is none."""


class Timer:
    def __init__(self):
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise TimerError(f"there is no CUDA driver: {error}") from error
        self._call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuCtxGetCurrent", ctypes.byref(context))
        if not context.value:
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self._call("cuCtxSetCurrent", context)

    def _call(self, name, *arguments):
        code = getattr(self._driver, name)(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorName(code, ctypes.byref(text))
            raise TimerError(f"{name}: {(text.value or b'error').decode()}")

    def milliseconds(self, function, *arguments, **named):
        """Calls function(*arguments, **named); returns how long its work on the default stream took."""
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            self._call("cuEventCreate", ctypes.byref(event), 0)
        try:
            self._call("cuEventRecord", events[0], None)
            function(*arguments, **named)
            self._call("cuEventRecord", events[1], None)
            self._call("cuEventSynchronize", events[1])
            took = ctypes.c_float()
            self._call("cuEventElapsedTime", ctypes.byref(took), events[0], events[1])
            return took.value
        finally:
            for event in events:
                self._driver.cuEventDestroy_v2(event)
