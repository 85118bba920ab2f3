/* A fake NVRTC. $EMULATOR_COMPILER (host.py) compiles the source to a library of the host; the
 * "cubin" is the path of that library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct Program {
    char *source, log[4000], path[600];
} Program;

EXPORT int nvrtcVersion(int *major, int *minor);
EXPORT int nvrtcCreateProgram(Program **program, const char *source, const char *name, int nheaders,
                              const char *const *headers, const char *const *names);
EXPORT int nvrtcDestroyProgram(Program **program);
EXPORT int nvrtcCompileProgram(Program *program, int noptions, const char *const *options);
EXPORT int nvrtcGetProgramLogSize(Program *program, size_t *size);
EXPORT int nvrtcGetProgramLog(Program *program, char *log);
EXPORT int nvrtcGetCUBINSize(Program *program, size_t *size);
EXPORT int nvrtcGetCUBIN(Program *program, char *cubin);

int
nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 99;
    return 0;
}

int
nvrtcCreateProgram(Program **program, const char *source, const char *name, int nheaders,
                   const char *const *headers, const char *const *names)
{
    (void)name, (void)nheaders, (void)headers, (void)names;
    *program = calloc(1, sizeof **program);
    (*program)->source = strdup(source);
    return 0;
}

int
nvrtcDestroyProgram(Program **program)
{
    free((*program)->source);
    free(*program);
    return 0;
}

int
nvrtcCompileProgram(Program *program, int noptions, const char *const *options)
{
    char command[2000], source[600];
    const char *folder = getenv("EMULATOR_FOLDER");
    (void)noptions, (void)options;
    snprintf(source, sizeof source, "%s/kernels-XXXXXX", folder ? folder : "/tmp");
    int file = mkstemp(source);
    if (file < 0 || write(file, program->source, strlen(program->source)) < 0)
        return 1;
    close(file);
    snprintf(program->path, sizeof program->path, "%.560s.so", source);
    snprintf(command, sizeof command, "%s %s %s 2>&1", getenv("EMULATOR_COMPILER"), source,
             program->path);
    FILE *pipe = popen(command, "r");
    size_t length = fread(program->log, 1, sizeof program->log - 1, pipe);
    program->log[length] = 0;
    return pclose(pipe) ? 6 : 0;
}

int
nvrtcGetProgramLogSize(Program *program, size_t *size)
{
    *size = strlen(program->log) + 1;
    return 0;
}

int
nvrtcGetProgramLog(Program *program, char *log)
{
    strcpy(log, program->log);
    return 0;
}

int
nvrtcGetCUBINSize(Program *program, size_t *size)
{
    *size = strlen(program->path) + 1;
    return 0;
}

int
nvrtcGetCUBIN(Program *program, char *cubin)
{
    strcpy(cubin, program->path);
    return 0;
}
