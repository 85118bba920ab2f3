/* What the files of the driver without a card share. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

/* Counts a call of a function of the driver. */
void fake_called(const char *name);
/* The same of one that can fail before it does anything: where $FAKE_CUDA_FAIL is its name, or it is the
 * call that fake_fail_after() chose. */
int fake_stops(const char *name);
#define FAKE_MAY_FAIL                                                                              \
    do {                                                                                           \
        int stops_ = fake_stops(__func__);                                                         \
        if (stops_)                                                                                \
            return stops_;                                                                         \
    } while (0)
/* `result` where $FAKE_CUDA_FAIL is the name, else 0. */
int fake_fails(const char *name, int result);
/* Shared blocks that this process has. */
int fake_shared(void);
/* The address is of the device that is current. */
void fake_own(const void *what);

#endif
