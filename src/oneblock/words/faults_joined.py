"""Words for norms, activations, residual paths, and how a module starts."""

JOINED: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "norm.time": (
        (
            "A norm reduces over the tokens of a text: axes {axes} of {shape}.",
            "Normalise the features of each token: the last axis only.",
        ),
        (
            "归一化在文本的词元之间进行：形状 {shape} 的第 {axes} 维。",
            "只对每个词元的特征归一化：仅最后一维。",
        ),
    ),
    "norm.batch": (
        (
            "A norm reduces over the texts of a batch: axes {axes} of {shape}.",
            "Normalise the features of each token: the last axis only.",
        ),
        (
            "归一化在批次的文本之间进行：形状 {shape} 的第 {axes} 维。",
            "只对每个词元的特征归一化：仅最后一维。",
        ),
    ),
    "norm.batchnorm": (
        (
            "A batch norm (input {shape}): what a token becomes depends on other texts and positions, padding "
            "included.",
            "Use nn.LayerNorm or nn.RMSNorm over the features.",
        ),
        (
            "使用了批归一化（输入 {shape}）：词元的结果取决于其他文本和位置，填充也包括在内。",
            "改用在特征维上的 nn.LayerNorm 或 nn.RMSNorm。",
        ),
    ),
    "norm.outside": (
        (
            "Epsilon ({epsilon}) is added after the root ({count} norms): at a deviation of 0.001 the result is "
            "off {times}-fold.",
            "Divide by sqrt(variance + epsilon): nn.LayerNorm, nn.RMSNorm.",
        ),
        (
            "epsilon（{epsilon}）加在开方之后（{count} 处归一化）：标准差为 0.001 时结果相差 {times} 倍。",
            "应除以 sqrt(方差 + epsilon)：nn.LayerNorm、nn.RMSNorm。",
        ),
    ),
    "norm.unbiased": (
        (
            "The variance is divided by n - 1 ({count} norms, n = {n}): results are off by the share {off}.",
            "Use var(unbiased=False) or std(correction=0): torch's default divides by n - 1.",
        ),
        (
            "方差除以了 n - 1（{count} 处归一化，n = {n}）：结果偏差比例为 {off}。",
            "使用 var(unbiased=False) 或 std(correction=0)：torch 默认除以 n - 1。",
        ),
    ),
    "norm.epsilon": (
        (
            "A norm uses epsilon {got}, the configuration says {setting} = {expected}.",
            "Hand the configured epsilon to every norm, those of heads and embeddings too.",
        ),
        (
            "归一化使用的 epsilon 为 {got}，而配置为 {setting} = {expected}。",
            "把配置的 epsilon 传给每一个归一化层，包括输出头和嵌入中的。",
        ),
    ),
    "activation.config": (
        (
            "The activation is {got}, the configuration says {setting} = {expected}.",
            'GELU has two forms: nn.GELU() is the exact one (erf), nn.GELU("tanh") the approximation (gelu_new).',
        ),
        (
            "激活函数为 {got}，而配置为 {setting} = {expected}。",
            'GELU 有两种形式：nn.GELU() 为精确形式（erf），nn.GELU("tanh") 为近似形式（gelu_new）。',
        ),
    ),
    "residual.missing": (
        (
            "A residual path is missing: with {branch} silenced, nothing of the tokens gets through.",
            "Add what the branch reads to what it gives: x = x + branch(norm(x)).",
        ),
        (
            "缺少残差连接：当 {branch} 置零时，词元的信息无法通过。",
            "把分支的输入加到其输出上：x = x + branch(norm(x))。",
        ),
    ),
    "norm.final": (
        (
            "{count} blocks norm only inside their branches, and nothing norms their sum after {last}.",
            "Norm the sum before the head: x = norm(x), or norm=nn.LayerNorm(dim) in torch's encoder.",
        ),
        (
            "{count} 个块只在分支内部归一化，{last} 之后没有对总和归一化。",
            "在输出头之前归一化：x = norm(x)；torch 的编码器用 norm=nn.LayerNorm(dim)。",
        ),
    ),
    "layers.equal": (
        (
            "{count} of {of} layers start with the same weights.",
            "Draw each layer's weights anew: torch copies the layer that it is given; call reset or init on each copy.",
        ),
        (
            "{of} 层中有 {count} 层的初始权重相同。",
            "为每一层重新抽取权重：torch 会复制给它的那一层；对每个副本重新初始化。",
        ),
    ),
    "layers.shared": (
        (
            "{names} are one module: {count} names, one set of weights.",
            "Make a new module for each: ModuleList(Block() for _ in range(n)), not [Block()] * n.",
        ),
        (
            "{names} 是同一个模块：{count} 个名字，一组权重。",
            "每处新建一个模块：ModuleList(Block() for _ in range(n))，而不是 [Block()] * n。",
        ),
    ),
    "start.loss": (
        (
            "The loss at the start is {loss}, that of knowing nothing is {expected}: logits spread by {spread}.",
            "Draw head and embeddings narrower (std 0.02), or scale the logits by dim ** -0.5 where they are tied.",
        ),
        (
            "初始损失为 {loss}，而一无所知时应为 {expected}：logits 的离散程度为 {spread}。",
            "缩小输出头和嵌入的初始标准差（0.02），或在权重共享时将 logits 乘以 dim ** -0.5。",
        ),
    ),
    "weights.unused": (
        (
            "{count} weights take no part in the answer, {weight} first.",
            "Use the part in forward and add what it gives, or take it out; look for detach and no_grad.",
        ),
        (
            "{count} 个权重不参与输出，首先是 {weight}。",
            "在 forward 中使用该部分并加上它的输出，或将其删除；检查 detach 与 no_grad。",
        ),
    ),
    "layer.dead": (
        (
            "{count} weights get a gradient of exactly 0, {weight} first.",
            "Look for what multiplies them by 0 or clamps them, and for masks over everything.",
        ),
        (
            "{count} 个权重的梯度恰好为 0，首先是 {weight}。",
            "检查是什么把它们乘以 0 或截断，以及是否有遮住一切的掩码。",
        ),
    ),
    "layer.stuck": (
        (
            "{count} weights are stuck at 0, {weight} first: what they multiply is 0 too, after {steps} steps still.",
            "Start only one of two factors at zero; draw the other.",
        ),
        (
            "{count} 个权重停留在 0，首先是 {weight}：与之相乘的也是 0，{steps} 步之后依然如此。",
            "两个因子中只有一个可以从零开始，另一个应随机抽取。",
        ),
    ),
}
