"""Words for saved and shared weights, adapters and routers."""

STORED: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "saved.unregistered": (
        (
            "{attribute} holds {count} modules or weights in a plain list or dict: not trained, not saved, not moved.",
            "Use nn.ModuleList, nn.ModuleDict or nn.ParameterList.",
        ),
        (
            "{attribute} 在普通列表或字典中保存了 {count} 个模块或权重：不会被训练、保存或移动。",
            "使用 nn.ModuleList、nn.ModuleDict 或 nn.ParameterList。",
        ),
    ),
    "saved.refused": (
        (
            "The module does not read its own saved weights: {said}",
            "Save and load under the same names; retie shared weights before loading.",
        ),
        (
            "模块无法读取自己保存的权重：{said}",
            "保存与加载使用相同的名称；加载之前重新共享权重。",
        ),
    ),
    "saved.incomplete": (
        (
            "Saved and read back, the module answers otherwise, by {moved}; {weight} is not in its state_dict.",
            "Register every weight as a parameter or buffer, and let no hook drop it.",
        ),
        (
            "保存再读取之后，模块的输出不同，相差 {moved}；{weight} 不在 state_dict 中。",
            "把每个权重注册为参数或缓冲区，不要让钩子将其丢弃。",
        ),
    ),
    "saved.prefix": (
        (
            "{count} saved names carry the wrapper's prefix {prefix}: they load into nothing that is not wrapped "
            "alike.",
            "Save the module inside: model._orig_mod or model.module; or compile in place with model.compile().",
        ),
        (
            "{count} 个保存的名称带有包装器前缀 {prefix}：只能加载到同样包装的模型中。",
            "保存内部模块：model._orig_mod 或 model.module；或用 model.compile() 就地编译。",
        ),
    ),
    "tied.by_data": (
        (
            "{weight} and {other} are two parameters over one memory: copies part them, optimizers move them twice.",
            "Tie the parameter, not its data: head.weight = embedding.weight.",
        ),
        (
            "{weight} 与 {other} 是同一内存上的两个参数：复制后会分离，优化器会更新两次。",
            "共享参数本身而非其数据：head.weight = embedding.weight。",
        ),
    ),
    "tied.copied": (
        (
            "{head} and {table} hold the same numbers in two tensors: training parts them.",
            "Tie the parameter: head.weight = embedding.weight; after loading, tie again.",
        ),
        (
            "{head} 与 {table} 以两个张量保存相同的数值：训练会使它们分离。",
            "共享参数：head.weight = embedding.weight；加载之后需重新共享。",
        ),
    ),
    "tied.lost": (
        (
            "The configuration says {setting}, but {head} and {table} are two weights.",
            "Tie them after building and after loading: head.weight = embedding.weight.",
        ),
        (
            "配置为 {setting}，但 {head} 与 {table} 是两个权重。",
            "在构建之后和加载之后共享：head.weight = embedding.weight。",
        ),
    ),
    "adapter.start": (
        (
            "The adapter does not start at zero: neither {down} nor {up} is 0, the model is another before it "
            "has learnt.",
            "Start one of the two at zero: nn.init.zeros_(B).",
        ),
        (
            "适配器不是从零开始：{down} 与 {up} 都不为 0，尚未学习时模型已经改变。",
            "让二者之一从零开始：nn.init.zeros_(B)。",
        ),
    ),
    "adapter.base": (
        (
            "The weight beside the adapter learns too: {base}, {count} of {of} adapters.",
            "Freeze it: weight.requires_grad_(False), before the optimizer is made.",
        ),
        (
            "适配器旁的权重也在学习：{base}，{of} 个适配器中有 {count} 个。",
            "在创建优化器之前将其冻结：weight.requires_grad_(False)。",
        ),
    ),
    "adapter.frozen": (
        (
            "The adapter's {weight} does not learn, while others do.",
            "Let both A and B learn: requires_grad_(True).",
        ),
        (
            "适配器的 {weight} 不学习，而其他权重在学习。",
            "让 A 与 B 都学习：requires_grad_(True)。",
        ),
    ),
    "adapter.merge": (
        (
            "Merging the adapter changes the answer by {moved}; unmerged, its factor is {factor}.",
            "Add factor * B @ A to the weight (transposed as it is stored), and stop adding the branch.",
        ),
        (
            "合并适配器使输出变化 {moved}；未合并时其系数为 {factor}。",
            "把 系数 * B @ A 加到权重上（注意转置），并停止再加该分支。",
        ),
    ),
    "adapter.unmerge": (
        (
            "Taking the merged adapter out again leaves the layer changed by {moved}.",
            "Subtract exactly what was added, once; better, keep the weight as it was.",
        ),
        (
            "取消合并后该层仍有 {moved} 的变化。",
            "恰好减去加上的部分，且只减一次；更好的做法是保留原权重。",
        ),
    ),
    "router.raw": (
        (
            "Experts are weighed by raw scores ({low} to {high}), not by shares.",
            "Take the softmax of the scores, before or after the choice; both are the same once renormalised.",
        ),
        (
            "专家按原始分数加权（{low} 至 {high}），而不是按份额。",
            "对分数做 softmax，在选择之前或之后均可；重新归一化后两者相同。",
        ),
    ),
    "router.above": (
        (
            "An expert's weight reaches {high}, more than a whole, among {active} chosen.",
            "Use shares that sum to at most 1: softmax, renormalised over the chosen where wanted.",
        ),
        (
            "某个专家的权重达到 {high}，超过 1（选中 {active} 个）。",
            "使用总和不超过 1 的份额：softmax，需要时在选中的专家上重新归一化。",
        ),
    ),
    "router.config": (
        (
            "The weights of a token sum to {mean} on average, the configuration says norm_topk_prob = {said}.",
            "Divide the chosen weights by their sum exactly where the configuration says so.",
        ),
        (
            "一个词元的权重之和平均为 {mean}，而配置为 norm_topk_prob = {said}。",
            "仅当配置要求时，才将选中的权重除以它们的和。",
        ),
    ),
    "router.untaught": (
        (
            "The router gets no gradient ({weight}): it never learns whom to choose.",
            "Multiply the experts' answers by its shares, not detached.",
        ),
        (
            "路由器得不到梯度（{weight}）：它永远学不会如何选择。",
            "用它的份额乘以专家的输出，且不要 detach。",
        ),
    ),
    "experts.untaught": (
        (
            "{missing} of {experts} experts get no gradient from any token.",
            "Look for experts that the router cannot choose; add a loss for balance, or noise in training.",
        ),
        (
            "{experts} 个专家中有 {missing} 个从任何词元都得不到梯度。",
            "检查路由器无法选中的专家；加入均衡损失，或在训练时加噪声。",
        ),
    ),
    "balance.padding": (
        (
            "The balance loss {loss} counts padding: other padding changes it by {moved}.",
            "Leave padded tokens out of both means, by the attention mask.",
        ),
        (
            "均衡损失 {loss} 计入了填充：改变填充使其变化 {moved}。",
            "按注意力掩码，在两个均值中都去掉填充词元。",
        ),
    ),
}
