/* The element programs of tests/programs in straightforward C, as a reference for compiled
 * loops. Arrays are C-ordered. Nothing is tuned beyond what the compiler does at -O3. */
#include <math.h>
#include <stdint.h>

void
cholesky(double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            for (int64_t k = 0; k < j; k++)
                a[i * n + j] -= a[i * n + k] * a[j * n + k];
            a[i * n + j] /= a[j * n + j];
        }
        for (int64_t k = 0; k < i; k++)
            a[i * n + i] -= a[i * n + k] * a[i * n + k];
        a[i * n + i] = sqrt(a[i * n + i]);
    }
}

void
lu(double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            for (int64_t k = 0; k < j; k++)
                a[i * n + j] -= a[i * n + k] * a[k * n + j];
            a[i * n + j] /= a[j * n + j];
        }
        for (int64_t j = i; j < n; j++)
            for (int64_t k = 0; k < i; k++)
                a[i * n + j] -= a[i * n + k] * a[k * n + j];
    }
}

int64_t
edit_distance(const int64_t *a, int64_t n, const int64_t *b, int64_t m, int64_t *table)
{
    int64_t w = m + 1;
    for (int64_t i = 0; i <= n; i++)
        for (int64_t j = 0; j <= m; j++)
            table[i * w + j] = j == 0 ? i : i == 0 ? j : 0;
    for (int64_t i = 1; i <= n; i++)
        for (int64_t j = 1; j <= m; j++) {
            int64_t up = table[(i - 1) * w + j] + 1, left = table[i * w + j - 1] + 1;
            int64_t least = left < up ? left : up;
            int64_t across = table[(i - 1) * w + j - 1] + (a[i - 1] != b[j - 1]);
            table[i * w + j] = across < least ? across : least;
        }
    return table[n * w + m];
}

void
seidel_2d(double *a, int64_t n, int64_t m, int64_t steps)
{
    for (int64_t t = 0; t < steps; t++)
        for (int64_t i = 1; i < n - 1; i++)
            for (int64_t j = 1; j < m - 1; j++)
                a[i * m + j] = (a[(i - 1) * m + j - 1] + a[(i - 1) * m + j] + a[(i - 1) * m + j + 1] +
                                a[i * m + j - 1] + a[i * m + j] + a[i * m + j + 1] +
                                a[(i + 1) * m + j - 1] + a[(i + 1) * m + j] + a[(i + 1) * m + j + 1]) /
                               9.0;
}

uint32_t
crc32(const uint8_t *data, int64_t n, const uint32_t *table)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (int64_t k = 0; k < n; k++)
        crc = table[(crc ^ data[k]) & 0xFF] ^ crc >> 8;
    return crc ^ 0xFFFFFFFFu;
}

int64_t
crc16(const uint8_t *data, int64_t n)
{
    int64_t crc = 0xFFFF;
    for (int64_t k = 0; k < n; k++) {
        crc ^= (int64_t)data[k] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
            crc &= 0xFFFF;
        }
    }
    return crc;
}
