"""Words for what a module remembers and draws, and for ways to its answer that part."""

STATE: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "dropout.eval": (
        (
            "Dropout is active in eval mode: two runs differ by {moved}.",
            "Drop only in train mode: nn.Dropout, F.dropout(x, p, self.training), or dropout_p=p if "
            "self.training else 0.0; "
            "call model.eval().",
        ),
        (
            "评估模式下 dropout 仍然生效：两次运行相差 {moved}。",
            "只在训练模式下丢弃：nn.Dropout、F.dropout(x, p, self.training)，或 dropout_p=p if self.training "
            "else 0.0；并调用 model.eval()。",
        ),
    ),
    "random.eval": (
        (
            "The answer in eval mode depends on torch's random generator: two runs differ by {moved}.",
            "Draw nothing in eval mode, or draw from a torch.Generator of your own with a fixed seed.",
        ),
        (
            "评估模式下的输出取决于 torch 的随机数生成器：两次运行相差 {moved}。",
            "评估模式下不要抽取随机数，或使用自己的、种子固定的 torch.Generator。",
        ),
    ),
    "dropout.absent": (
        (
            "Dropout is configured ({attribute} = {rate}) but nothing is dropped in train mode.",
            "Apply it in forward, with training=self.training, or configure 0.",
        ),
        (
            "配置了 dropout（{attribute} = {rate}），但训练模式下没有丢弃任何东西。",
            "在 forward 中以 training=self.training 使用它，或将其配置为 0。",
        ),
    ),
    "dropout.off": (
        (
            "Dropout stays off after eval: {lost} of {before} draws are gone when train mode is back.",
            "Change no rate when the mode changes; ask self.training in forward instead.",
        ),
        (
            "评估之后 dropout 不再恢复：回到训练模式后，{before} 次抽取中少了 {lost} 次。",
            "切换模式时不要修改丢弃率；应在 forward 中查询 self.training。",
        ),
    ),
    "random.drawn": (
        (
            "Eval mode draws from torch's random generator ({operation}) and does not use it: runs change what "
            "comes after.",
            "Draw only in train mode, or from a torch.Generator of your own.",
        ),
        (
            "评估模式从 torch 的随机数生成器抽取（{operation}）却不使用：每次运行都会影响后续结果。",
            "只在训练模式下抽取，或使用自己的 torch.Generator。",
        ),
    ),
    "state.changes": (
        (
            "The same question gets another answer the second time, by {moved}: a run changes the module.",
            "Keep nothing of a run in the module; hand caches in and out as arguments.",
        ),
        (
            "同一输入第二次得到不同的输出，相差 {moved}：一次运行改变了模块自身。",
            "不要把一次运行的结果留在模块里；缓存应作为参数传入和返回。",
        ),
    ),
    "state.fails": (
        (
            "After another text, the same question fails: {said}",
            "Keep nothing of a run in the module; hand caches in and out as arguments.",
        ),
        (
            "处理另一条文本之后，同一输入失败：{said}",
            "不要把一次运行的结果留在模块里；缓存应作为参数传入和返回。",
        ),
    ),
    "batch.one": (
        (
            "A text alone gets another answer than in a batch, by {moved}.",
            "Let no number depend on how many texts there are; name the axis in squeeze, mean and view.",
        ),
        (
            "单独一条文本与在批次中得到的输出不同，相差 {moved}。",
            "任何数值都不应取决于文本的条数；在 squeeze、mean 和 view 中写明维度。",
        ),
    ),
    "batch.one.fails": (
        (
            "A batch of one text fails: {said}",
            "Name the axis in squeeze (squeeze(-1)), so that a batch of one keeps its axis.",
        ),
        (
            "只有一条文本的批次失败：{said}",
            "在 squeeze 中写明维度（squeeze(-1)），使大小为 1 的批次维得以保留。",
        ),
    ),
    "paths.train": (
        (
            "With dropout at 0, train and eval mode differ by {moved}: the modes compute different things.",
            "Let self.training switch nothing but dropout; for torch's fast path see "
            "torch.backends.mha.set_fastpath_enabled(False).",
        ),
        (
            "dropout 为 0 时，训练与评估模式仍相差 {moved}：两种模式计算的内容不同。",
            "self.training 只应控制 dropout；torch 的快速路径可用 torch.backends.mha.set_fastpath_enabled(False) "
            "关闭。",
        ),
    ),
    "paths.compiled": (
        (
            "Compiled, the module answers otherwise, by {moved}.",
            "Make the same computation under torch.compiler.is_compiling() and without; keep no Python numbers "
            "that change.",
        ),
        (
            "编译后模块的输出不同，相差 {moved}。",
            "无论 torch.compiler.is_compiling() 与否都做同样的计算；不要依赖会变化的 Python 数值。",
        ),
    ),
    "views.fail": (
        (
            "Inputs that are views (not contiguous) fail: {said}",
            "Use reshape or flatten instead of view, or call contiguous() first.",
        ),
        (
            "输入为视图（内存不连续）时失败：{said}",
            "用 reshape 或 flatten 代替 view，或先调用 contiguous()。",
        ),
    ),
    "views.differ": (
        (
            "Inputs that are views (not contiguous) get another answer, by {moved}.",
            "Do not rely on strides (as_strided, data_ptr); call contiguous() first.",
        ),
        (
            "输入为视图（内存不连续）时输出不同，相差 {moved}。",
            "不要依赖步长（as_strided、data_ptr）；先调用 contiguous()。",
        ),
    ),
}
