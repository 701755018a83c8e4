// The browser's Luau VM as a small C interface for JavaScript: values on
// Luau's stack, calls out to the host, and the same two limits that the server
// enforces (crates/script/src/guard.rs): time per slice, memory per VM.
//
// JavaScript never throws through these frames and Luau never through its:
// a host function reports an error by returning HOST_ERROR with a message on
// the stack; a Luau error ends at vm_pcall.

#include "Luau/Common.h"
#include "lua.h"
#include "lualib.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define EXPORT(name) extern "C" __attribute__((export_name(#name)))
#define IMPORT(name) extern "C" __attribute__((import_module("host"), import_name(#name)))

// Calls host function `id` with `count` arguments on L's stack. Returns the
// number of results it pushed, or HOST_ERROR.
IMPORT(call) int host_call(lua_State* L, int id, int count);
// Milliseconds of a clock that never goes back.
IMPORT(now) double host_now();

static const int HOST_ERROR = -1;

// Safe points between two reads of the clock: about 20 microseconds of work.
static const unsigned CLOCK_EVERY = 1000;
// The same while they take longer than COUNTED_MS_PER_STEP: each may be a slow
// operation.
static const unsigned CLOCK_EVERY_SLOW = 100;
// The browser has no clock of CPU time. A safe point counts as at most this
// much, because the rest is most likely a machine that ran something else: a
// slice of 50 ms with fewer than 12,500 safe points is not stopped for it.
static const double COUNTED_MS_PER_STEP = 0.004;
// Wall time of a slice that stops it whatever was counted, in slices. The
// longest pause is left out: a computer may be suspended in the middle.
static const double WALL_SLICES = 20;
// Wall time after which a slice that is not stopped counts as slow, in slices:
// the host stops an instance whose slices are slow again and again.
static const double SLOW_SLICES = 4;
static const int TRACE_LEVELS_MAX = 16;
// How many slices builtin code may take before a script's slice begins.
static const double ENGINE_SLICES = 20;

enum Reason { REASON_NONE = 0, REASON_TIME = 1, REASON_MEMORY = 2 };

// Words shared with builtin/common/scheduler.luau.
struct Slot {
    double slice;      // number of the running slice
    unsigned instance; // the instance it belongs to
    unsigned pause;    // set to request a pause
    unsigned category; // the number its script's memory is counted under
    unsigned script;   // the script's own number; for servers
};

struct Vm {
    size_t used = 0;
    size_t soft = 0;    // past this a full collection decides
    size_t relaxed = 0; // the same while another script causes the excess
    size_t hard = 0;    // past this the allocator refuses user code
    size_t cap = 0;     // soft or relaxed
    int hoarder = -1;   // the memory category to blame, if any
    bool armed = false;
    bool in_host = false; // the host's own allocations are never refused
    bool collect = false;
    Reason reason = REASON_NONE;
    unsigned until_clock = CLOCK_EVERY;
    unsigned clock_every = CLOCK_EVERY; // what until_clock started from
    double slice_ms = 0, budget_ms = 0;
    double call_began = 0;
    double slice_began = 0, slice_counted = 0, longest_pause = 0; // of the running slice
    double last_read = 0;
    double slice_seen = -1;
    unsigned slow_instance = 0; // the last instance with a slow slice in this call
    double slice_at_start = 0; // the slice that had run when the call began
    Slot* slot = nullptr;
    char trace[2048] = "";
};

static Vm* vm_of(lua_State* L) {
    return static_cast<Vm*>(lua_callbacks(L)->userdata);
}

// Length of the last string, or number of results; read by JavaScript.
static int out_length;
static double out_vector[3];

// --- limits ---------------------------------------------------------------

static void* allocate(void* context, void* block, size_t old_size, size_t new_size) {
    Vm* vm = static_cast<Vm*>(context);
    if (!block) old_size = 0;
    if (new_size == 0) {
        free(block);
        vm->used -= old_size;
        return nullptr;
    }
    if (new_size > old_size) {
        size_t wanted = vm->used - old_size + new_size;
        if (wanted > vm->hard && vm->armed && !vm->in_host) return nullptr;
        if (wanted > vm->cap) vm->collect = true;
    }
    void* moved = realloc(block, new_size);
    if (moved) vm->used += new_size - old_size;
    return moved;
}

static void note_trace(lua_State* L, Vm* vm) {
    size_t at = 0;
    vm->trace[0] = 0;
    for (int level = 0; level < TRACE_LEVELS_MAX; level++) {
        lua_Debug info;
        if (!lua_getinfo(L, level, "sln", &info)) break;
        int written = snprintf(vm->trace + at, sizeof(vm->trace) - at, "%s:%d %s\n", info.short_src,
                               info.currentline, info.name ? info.name : "");
        if (written < 0 || at + written >= sizeof(vm->trace)) break;
        at += written;
    }
}

static void stop(lua_State* L, Vm* vm, Reason reason) {
    if (vm->reason == REASON_NONE) {
        vm->reason = reason;
        note_trace(L, vm);
    }
    // Raised at every safe point until the host is back in control, so that no
    // pcall outlives it.
    vm->until_clock = 1;
    lua_rawcheckstack(L, 4);
    luaL_error(L, reason == REASON_TIME ? "script stopped: out of time" : "script stopped: out of memory");
}

// When another script holds most of the memory, the running one may continue;
// the host handles the other.
static bool spare_the_innocent(lua_State* L, Vm* vm) {
    if (vm->cap == vm->relaxed) return false;
    int hoarder = 1;
    for (int category = 2; category < 256; category++)
        if (lua_totalbytes(L, category) > lua_totalbytes(L, hoarder)) hoarder = category;
    if (static_cast<unsigned>(hoarder) == vm->slot->category) return false;
    vm->hoarder = hoarder;
    vm->cap = vm->relaxed;
    vm->slot->pause = 1;
    return true;
}

// Before a thread runs: its memory counts for the script whose slice this is.
static void before_resume(lua_State* L) {
    Vm* vm = vm_of(L);
    if (vm->armed) lua_setmemcat(L, vm->slot->category & 255);
}

static void begin_slice(Vm* vm, double now) {
    vm->slice_seen = vm->slot->slice;
    vm->slice_began = now;
    vm->slice_counted = vm->longest_pause = 0;
}

static void interrupt(lua_State* L, int gc) {
    Vm* vm = vm_of(L);
    if (gc >= 0 || !vm->armed) return;
    if (vm->reason != REASON_NONE) stop(L, vm, vm->reason);
    if (vm->collect) {
        vm->collect = false;
        if (vm->used > vm->cap) {
            lua_gc(L, LUA_GCCOLLECT, 0);
            if (vm->used > vm->cap && !spare_the_innocent(L, vm)) stop(L, vm, REASON_MEMORY);
        }
    }
    if (--vm->until_clock) return;
    double now = host_now();
    double passed = now - vm->last_read;
    vm->last_read = now;
    double countable = vm->clock_every * COUNTED_MS_PER_STEP;
    vm->clock_every = vm->until_clock = passed > countable ? CLOCK_EVERY_SLOW : CLOCK_EVERY;
    if (vm->slot->slice != vm->slice_seen) {
        begin_slice(vm, now);
        passed = 0;
    }
    vm->slice_counted += passed < countable ? passed : countable;
    if (passed > vm->longest_pause) vm->longest_pause = passed;
    if (now - vm->call_began > vm->budget_ms) vm->slot->pause = 1;
    // Until a script's slice begins, only builtin code runs. Stopping it would lose the handlers it was about to start.
    double slices = vm->slot->slice == vm->slice_at_start ? ENGINE_SLICES : 1;
    double wall = now - vm->slice_began - vm->longest_pause;
    if (slices == 1 && wall > vm->slice_ms * SLOW_SLICES) vm->slow_instance = vm->slot->instance;
    if (vm->slice_counted > vm->slice_ms * slices || wall > vm->slice_ms * WALL_SLICES * slices) stop(L, vm, REASON_TIME);
}

// Flags that keep Luau memory-safe at its limits; the server sets the same ones.
static void set_safety_flags() {
    static const char* const names[] = {"LuauTableRobustOom", "LuauTableMoveTimeoutFix", "LuauTableArrayAdjustCheck"};
    for (Luau::FValue<bool>* flag = Luau::FValue<bool>::list; flag; flag = flag->next)
        for (const char* name : names)
            if (strcmp(flag->name, name) == 0) flag->value = true;
}

// --- lifecycle ---------------------------------------------------------------

EXPORT(vm_new) lua_State* vm_new(unsigned soft, unsigned hard) {
    set_safety_flags();
    Vm* vm = new Vm();
    vm->soft = vm->cap = soft;
    vm->relaxed = soft + (hard - soft) / 2;
    vm->hard = hard;
    lua_State* L = lua_newstate(allocate, vm);
    if (!L) return nullptr;
    lua_callbacks(L)->userdata = vm;
    lua_callbacks(L)->interrupt = interrupt;
    lua_callbacks(L)->preresume = before_resume;
    luaL_openlibs(L);
    return L;
}

EXPORT(vm_close) void vm_close(lua_State* L) {
    Vm* vm = vm_of(L);
    lua_close(L);
    delete vm;
}

// Pushes the buffer that holds the words shared with the scheduler. The caller
// keeps a reference; Luau never moves it.
EXPORT(vm_push_slot) void vm_push_slot(lua_State* L) {
    void* words = lua_newbuffer(L, sizeof(Slot));
    memset(words, 0, sizeof(Slot));
    vm_of(L)->slot = static_cast<Slot*>(words);
}

EXPORT(vm_arm) void vm_arm(lua_State* L, double slice_ms, double budget_ms) {
    Vm* vm = vm_of(L);
    vm->reason = REASON_NONE;
    vm->clock_every = vm->until_clock = CLOCK_EVERY;
    vm->slice_ms = slice_ms;
    vm->budget_ms = budget_ms;
    vm->last_read = vm->call_began = host_now();
    vm->slice_at_start = vm->slot->slice;
    begin_slice(vm, vm->last_read);
    vm->slot->pause = 0;
    vm->slow_instance = 0;
    vm->cap = vm->soft;
    vm->armed = true;
}

// Returns why the call was stopped: 0 not at all, 1 time, 2 memory.
EXPORT(vm_disarm) int vm_disarm(lua_State* L) {
    Vm* vm = vm_of(L);
    vm->armed = false;
    return vm->reason;
}

// The last instance whose slice was slow in the last call; 0 when there is none.
EXPORT(vm_slow_instance) unsigned vm_slow_instance(lua_State* L) {
    return vm_of(L)->slow_instance;
}

EXPORT(vm_instance) unsigned vm_instance(lua_State* L) {
    return vm_of(L)->slot->instance;
}

// The memory category that used most when memory ran out while another
// script ran, once; -1 when there is none.
EXPORT(vm_take_hoarder) int vm_take_hoarder(lua_State* L) {
    int hoarder = vm_of(L)->hoarder;
    vm_of(L)->hoarder = -1;
    return hoarder;
}

EXPORT(vm_trace) const char* vm_trace(lua_State* L) {
    out_length = static_cast<int>(strlen(vm_of(L)->trace));
    return vm_of(L)->trace;
}

EXPORT(vm_used) unsigned vm_used(lua_State* L) {
    return static_cast<unsigned>(vm_of(L)->used);
}

EXPORT(vm_collect) void vm_collect(lua_State* L) {
    lua_gc(L, LUA_GCCOLLECT, 0);
}

// --- code ---------------------------------------------------------------------

static int host_function(lua_State* L) {
    Vm* vm = vm_of(L);
    int id = static_cast<int>(reinterpret_cast<intptr_t>(lua_tolightuserdata(L, lua_upvalueindex(1))));
    luaL_checkstack(L, 32, "host function");
    vm->in_host = true;
    int results = host_call(L, id, lua_gettop(L));
    vm->in_host = false;
    if (results == HOST_ERROR) lua_error(L);
    return results;
}

// Pushes a function that calls the host. `name` must stay allocated.
EXPORT(vm_push_host) void vm_push_host(lua_State* L, const char* name, int id) {
    lua_pushlightuserdata(L, reinterpret_cast<void*>(static_cast<intptr_t>(id)));
    lua_pushcclosure(L, host_function, name, 1);
}

// Loads bytecode with the environment at `env` (0: the globals). Pushes the
// function and returns 0, or pushes a message.
EXPORT(vm_load) int vm_load(lua_State* L, const char* name, const char* code, unsigned size, int env) {
    return luau_load(L, name, code, size, env);
}

EXPORT(vm_pcall) int vm_pcall(lua_State* L, int args, int results) {
    return lua_pcall(L, args, results, 0);
}

// Makes the table on top the globals of this VM (see close_globals in vm.rs).
EXPORT(vm_set_globals) void vm_set_globals(lua_State* L) {
    lua_setreadonly(L, LUA_GLOBALSINDEX, true);
    lua_setsafeenv(L, LUA_GLOBALSINDEX, true);
    lua_setsafeenv(L, -1, true);
    lua_replace(L, LUA_GLOBALSINDEX);
}

EXPORT(vm_safe_env) void vm_safe_env(lua_State* L, int at) {
    lua_setsafeenv(L, at, true);
}

EXPORT(vm_freeze) void vm_freeze(lua_State* L, int at) {
    lua_setreadonly(L, at, true);
}

// Makes the table on top the metatable of all vectors.
EXPORT(vm_set_vector_meta) void vm_set_vector_meta(lua_State* L) {
    lua_pushvector(L, 0, 0, 0);
    lua_insert(L, -2);
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

// --- values ---------------------------------------------------------------------

EXPORT(vm_length) int* vm_length() { return &out_length; }
EXPORT(vm_vector) double* vm_vector() { return out_vector; }
EXPORT(vm_alloc) void* vm_alloc(unsigned size) { return malloc(size); }
EXPORT(vm_free) void vm_free(void* block) { free(block); }

EXPORT(vm_top) int vm_top(lua_State* L) { return lua_gettop(L); }
EXPORT(vm_set_top) void vm_set_top(lua_State* L, int top) { lua_settop(L, top); }
EXPORT(vm_check_stack) int vm_check_stack(lua_State* L, int slots) { return lua_checkstack(L, slots); }
EXPORT(vm_push_value) void vm_push_value(lua_State* L, int at) { lua_pushvalue(L, at); }

EXPORT(vm_type) int vm_type(lua_State* L, int at) { return lua_type(L, at); }
EXPORT(vm_to_number) double vm_to_number(lua_State* L, int at) { return lua_tonumber(L, at); }
EXPORT(vm_to_boolean) int vm_to_boolean(lua_State* L, int at) { return lua_toboolean(L, at); }

// Only for values that are strings: converting would change a key in place.
EXPORT(vm_to_string) const char* vm_to_string(lua_State* L, int at) {
    size_t size = 0;
    const char* text = lua_type(L, at) == LUA_TSTRING ? lua_tolstring(L, at, &size) : nullptr;
    out_length = static_cast<int>(size);
    return text;
}

// Leaves the components in vm_vector().
EXPORT(vm_to_vector) int vm_to_vector(lua_State* L, int at) {
    const float* v = lua_tovector(L, at);
    for (int i = 0; v && i < 3; i++) out_vector[i] = v[i];
    return v != nullptr;
}

EXPORT(vm_push_nil) void vm_push_nil(lua_State* L) { lua_pushnil(L); }
EXPORT(vm_push_boolean) void vm_push_boolean(lua_State* L, int value) { lua_pushboolean(L, value); }
EXPORT(vm_push_number) void vm_push_number(lua_State* L, double value) { lua_pushnumber(L, value); }
EXPORT(vm_push_string) void vm_push_string(lua_State* L, const char* text, unsigned size) {
    lua_pushlstring(L, text, size);
}
EXPORT(vm_push_vector) void vm_push_vector(lua_State* L, double x, double y, double z) {
    lua_pushvector(L, static_cast<float>(x), static_cast<float>(y), static_cast<float>(z));
}
// Pushes a new buffer and returns where its bytes are, for the host to fill.
EXPORT(vm_push_buffer) void* vm_push_buffer(lua_State* L, unsigned size) { return lua_newbuffer(L, size); }
// Where the bytes of a buffer are, for as long as nothing else runs; the size is in vm_length().
EXPORT(vm_to_buffer) void* vm_to_buffer(lua_State* L, int at) {
    size_t size = 0;
    void* bytes = lua_tobuffer(L, at, &size);
    out_length = static_cast<int>(size);
    return bytes;
}
EXPORT(vm_push_table) void vm_push_table(lua_State* L, int items, int keys) { lua_createtable(L, items, keys); }

// Raw access only: the host never runs a script's metamethods by accident.
EXPORT(vm_raw_length) int vm_raw_length(lua_State* L, int at) { return lua_objlen(L, at); }
EXPORT(vm_raw_get_index) int vm_raw_get_index(lua_State* L, int at, int index) { return lua_rawgeti(L, at, index); }
EXPORT(vm_raw_set_index) void vm_raw_set_index(lua_State* L, int at, int index) { lua_rawseti(L, at, index); }
EXPORT(vm_raw_get) int vm_raw_get(lua_State* L, int at) { return lua_rawget(L, at); }
EXPORT(vm_raw_set) void vm_raw_set(lua_State* L, int at) { lua_rawset(L, at); }
EXPORT(vm_next) int vm_next(lua_State* L, int at) { return lua_next(L, at); }

// 0: no metatable, 1: another one, 2: the one behind `reference`.
EXPORT(vm_metatable_is) int vm_metatable_is(lua_State* L, int at, int reference) {
    if (!lua_getmetatable(L, at)) return 0;
    lua_getref(L, reference);
    int same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same ? 2 : 1;
}

EXPORT(vm_ref) int vm_ref(lua_State* L, int at) { return lua_ref(L, at); }
EXPORT(vm_push_ref) void vm_push_ref(lua_State* L, int reference) { lua_getref(L, reference); }
