// zstd, loaded when it is first needed, so that a machine without it runs all but compressed blocks. The contracts are
// in clarder.h. The prototypes are those of zstd's stable API, which has been the same since 1.4.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "clarder.h"

typedef struct ZSTD_CCtx_s ZSTD_CCtx;
typedef struct ZSTD_DCtx_s ZSTD_DCtx;

static struct {
    ZSTD_CCtx *(*createCCtx)(void);
    size_t (*freeCCtx)(ZSTD_CCtx *);
    size_t (*compressCCtx)(ZSTD_CCtx *, void *, size_t, const void *, size_t, int);
    ZSTD_DCtx *(*createDCtx)(void);
    size_t (*freeDCtx)(ZSTD_DCtx *);
    size_t (*decompressDCtx)(ZSTD_DCtx *, void *, size_t, const void *, size_t);
    size_t (*findFrameCompressedSize)(const void *, size_t);
    size_t (*compressBound)(size_t);
    unsigned (*isError)(size_t);
    int is_there;
} zstd;

/// What a thread compresses and unpacks with; freed when it ends.
typedef struct {
    ZSTD_CCtx *c;
    ZSTD_DCtx *d;
} contexts;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void free_contexts(void *pointer) {
    contexts *own = pointer;
    if (own->c) zstd.freeCCtx(own->c);
    if (own->d) zstd.freeDCtx(own->d);
    free(own);
}

static int find(void *library, const char *name, void **target) { return (*target = dlsym(library, name)) != NULL; }

static void load(void) {
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    int all = find(library, "ZSTD_createCCtx", (void **)&zstd.createCCtx);
    all &= find(library, "ZSTD_freeCCtx", (void **)&zstd.freeCCtx);
    all &= find(library, "ZSTD_compressCCtx", (void **)&zstd.compressCCtx);
    all &= find(library, "ZSTD_createDCtx", (void **)&zstd.createDCtx);
    all &= find(library, "ZSTD_freeDCtx", (void **)&zstd.freeDCtx);
    all &= find(library, "ZSTD_decompressDCtx", (void **)&zstd.decompressDCtx);
    all &= find(library, "ZSTD_findFrameCompressedSize", (void **)&zstd.findFrameCompressedSize);
    all &= find(library, "ZSTD_compressBound", (void **)&zstd.compressBound);
    all &= find(library, "ZSTD_isError", (void **)&zstd.isError);
    zstd.is_there = all && pthread_key_create(&key, free_contexts) == 0;
}

int larder_zstd_is_there(void) {
    pthread_once(&once, load);
    return zstd.is_there;
}

static contexts *own_contexts(void) {
    if (!larder_zstd_is_there()) return NULL;
    contexts *own = pthread_getspecific(key);
    if (!own) {
        own = calloc(1, sizeof *own);
        if (own && pthread_setspecific(key, own) != 0) {
            free(own);
            own = NULL;
        }
    }
    return own;
}

size_t larder_zstd_bound(size_t n) { return larder_zstd_is_there() ? zstd.compressBound(n) : 0; }

ssize_t larder_zstd_pack(void *out, size_t capacity, const void *p, size_t n, int level) {
    contexts *own = own_contexts();
    if (!own) return -1;
    if (!own->c) own->c = zstd.createCCtx();
    if (!own->c) return -1;
    size_t count = zstd.compressCCtx(own->c, out, capacity, p, n, level);
    return zstd.isError(count) ? -1 : (ssize_t)count;
}

ssize_t larder_zstd_unpack(void *out, size_t capacity, const void *p, size_t n) {
    contexts *own = own_contexts();
    if (!own) return -1;
    if (!own->d) own->d = zstd.createDCtx();
    if (!own->d) return -1;
    size_t count = zstd.decompressDCtx(own->d, out, capacity, p, n);
    return zstd.isError(count) ? -1 : (ssize_t)count;
}

ssize_t larder_zstd_frame(const void *p, size_t n) {
    if (!larder_zstd_is_there()) return -1;
    size_t count = zstd.findFrameCompressedSize(p, n);
    return zstd.isError(count) ? -1 : (ssize_t)count;
}
